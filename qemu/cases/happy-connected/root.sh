. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
talk 10.0.0.1 10.0.0.2 60000
rdma res show qp | tee qp.txt
grep -q 'link softib0/1 .* type RC state RTS' qp.txt
