. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^10.0.0.3:/ / nfs4 .*proto=tcp.*addr=10.0.0.3 ' /proc/mounts
ibboot check --all | tee check.now
grep -q '^  ok        root.mounted               nfs4 10.0.0.3:/$' check.now
grep -q '^  ok        root.path                  10.0.0.3 through ib0$' check.now
