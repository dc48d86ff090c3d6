. /run/ibboot-fabric/lib.sh
set -e
[ ! -e /run/ibboot ]
ip -4 addr show dev eth0 | grep 'inet 10.0.2.15/24 .* eth0'
# The others ran: rdma-core's unit loaded ib_ipoib.
wait_for 120 'rdma link | grep "^link softib0/1 .*state ACTIVE"'
[ -e /sys/class/net/ib0 ]
journalctl -b --no-pager | grep 'Started .*Device-Mapper Multipath Device Controller'
