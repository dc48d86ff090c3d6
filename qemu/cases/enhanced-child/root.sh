. /run/ibboot-fabric/lib.sh
set -e
[ "$(ip -o link | grep -c 'ib0.8001@ib0')" = 1 ]
[ "$(cut -c 1-2 /sys/class/net/ib0.8001/address)" = 00 ]
talk 10.0.1.1 10.0.1.2 2016
