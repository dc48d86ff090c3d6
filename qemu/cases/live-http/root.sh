. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^LiveOS_rootfs / overlay ' /proc/mounts
talk 10.0.0.1 10.0.0.2
ibboot check --all | tee check.now
grep -q '^  ok        root.mounted               overlay LiveOS_rootfs$' check.now
grep -q '^  ok        root.path                  10.0.0.2 through ib0$' check.now
