. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
talk 10.0.0.1 10.0.0.2 60000
rc_queue_pair softib0 1
