. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^10.0.0.2:/ / nfs4 .*proto=tcp.*addr=10.0.0.2 ' /proc/mounts
[ "$(cat /sys/class/net/ib0/mode)" = datagram ]
ibboot check --all | grep -q '^  ok        root.path                  10.0.0.2 through ib0$'
