. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/ib0/mtu)" = 4092 ]
talk 10.0.0.1 10.0.0.2 4064
