. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/ib0/mtu)" = 2044 ]
# The MTU was written once.
[ "$(cat /sys/class/net/ib0/carrier_down_count)" = 1 ]
address=$(ip -4 -o addr show dev ib0 | sed 's,.*inet \([0-9.]*\)/.*,\1,')
talk "$address" 10.0.0.2 2016
