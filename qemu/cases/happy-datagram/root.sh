. /run/ibboot-fabric/lib.sh
set -e
ip -d addr show dev ib0
[ "$(cat /sys/class/net/ib0/mode)" = datagram ]
[ "$(cat /sys/class/net/ib0/mtu)" = 2044 ]
fabric sm running
talk 10.0.0.1 10.0.0.2 2016
