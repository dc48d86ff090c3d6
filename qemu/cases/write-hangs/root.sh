. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib2 | grep -q 'inet 10.0.2.1/24 .* ib2'
[ ! -e /sys/class/net/ib0.8001 ]
