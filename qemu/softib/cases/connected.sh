# SPDX-License-Identifier: GPL-2.0-only
# connected mode: 65520 octets, over RC queue pairs
with_ipoib
echo connected > /sys/class/net/ib0/mode
inside sh -c 'echo connected > /sys/class/net/ib1/mode'
check "mode connected" '[ "$(cat /sys/class/net/ib0/mode)" = connected ]'
check "MTU 65520" '[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]'
wait_for 20 "carrier again" 'has_carrier ib0 && pings'
check "60000 octets, not fragmented" 'pings -s 60000 -M do 10.0.0.2'
check "RC queue pairs" 'rdma res show qp | grep -q "type RC state RTS"'
echo datagram > /sys/class/net/ib0/mode
wait_for 20 "datagram here, connected there: traffic still passes" 'has_carrier ib0 && pings'
ip link set ib0 type ipoib mode connected
check "connected by netlink" '[ "$(cat /sys/class/net/ib0/mode)" = connected ]'
wait_for 20 "traffic" 'pings -s 60000 10.0.0.2'
