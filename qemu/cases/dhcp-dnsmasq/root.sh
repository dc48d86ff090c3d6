. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.55/24 .* ib0'
ip -4 addr show dev ib0 | grep -q 'valid_lft forever'
ip route | grep -q '^default via 10.0.0.2 dev ib0'
[ "$(cat /sys/class/net/ib0/mtu)" = 1500 ]
talk 10.0.0.55 10.0.0.2
