. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^10.0.0.2:/ / nfs4 .*proto=tcp.*addr=10.0.0.2 ' /proc/mounts
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
rdma res show qp | grep -q 'link softib0/1 .* type RC state RTS'
ibboot check --all | grep -q '^  ok        root.path                  10.0.0.2 through ib0$'
