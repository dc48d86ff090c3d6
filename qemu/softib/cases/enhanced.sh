# SPDX-License-Identifier: GPL-2.0-only
# enhanced IPoIB: no connected mode, an MTU that takes the carrier down, an open that takes its time
carriers() { cat /sys/class/net/ib0/carrier_down_count; }
load enhanced=1
sh $fabric up
sh $fabric partitions 'Default=0x7fff,ipoib,mtu=5,defmember=full:ALL=full;'
sh $fabric sm start
wait_for 20 "ACTIVE" "$active"
check "the flags say no connected mode" '[ "$(cut -c1-2 /sys/class/net/ib0/address)" = 00 ]'
check "the mode is datagram" '[ "$(cat /sys/class/net/ib0/mode)" = datagram ]'
check "the mode file refuses connected" '! echo connected > /sys/class/net/ib0/mode 2> /dev/null'
check "and has not moved" '[ "$(cat /sys/class/net/ib0/mode)" = datagram ]'
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0
ip link set ib0 up
wait_for 20 "carrier" 'has_carrier ib0'
wait_for 5 "MTU 4092, by the broadcast group" '[ "$(cat /sys/class/net/ib0/mtu)" = 4092 ]'
wait_for 20 "ping" pings
check "the queue pair is ours" 'rdma res show qp | grep -q "link softib0/1 .*type UD .*comm \[softib\]"'
check "ib_ipoib has none" '! rdma res show qp | grep -q "comm \[ib_ipoib\]"'
check "a full datagram passes" 'pings -s 4064 -M do 10.0.0.2'
check "200 in a burst pass" 'ping -q -c 200 -f -s 1000 10.0.0.2 | grep -q " 0% packet loss"'

before=$(carriers)
echo 2044 > /sys/class/net/ib0/mtu
check "MTU 2044: carrier was off once" '[ "$(carriers)" = $((before + 1)) ] && has_carrier ib0'
check "MTU 2044" 'pings -s 2016 -M do 10.0.0.2 && ! pings -s 2017 -M do 10.0.0.2 2> /dev/null'
echo 2044 > /sys/class/net/ib0/mtu
check "the same once more: the kernel does not ask the driver" '[ "$(carriers)" = $((before + 1)) ]'
echo 4092 > /sys/class/net/ib0/mtu
wait_for 5 "MTU 4092 again" 'pings -s 4064 -M do 10.0.0.2'
check "above the port's MTU is refused" '! echo 4093 > /sys/class/net/ib0/mtu 2> /dev/null'

echo 700 > /sys/module/softib/parameters/open_ms
at=$(seconds)
ip link set ib0 down; ip link set ib0 up
check "an open takes its time: $(since "$at") s" '! less "$(since "$at")" 0.7'
wait_for 20 "traffic" 'has_carrier ib0 && pings'
at=$(seconds)
echo 2044 > /sys/class/net/ib0/mtu
check "so does a change of the MTU: $(since "$at") s" '! less "$(since "$at")" 0.7'
wait_for 5 "traffic" pings
echo 0 > /sys/module/softib/parameters/open_ms

sh $fabric partitions 'Default=0x7fff,ipoib,mtu=5,defmember=full:ALL=full;' \
	'Blue=0x0001,ipoib,defmember=full:ALL=full;'
wait_for 20 "0x8001 has arrived" 'grep -q 0x8001 /sys/class/infiniband/softib0/ports/1/pkeys/*'
echo 0x8001 > /sys/class/net/ib0/create_child
sh $fabric address 10.0.1.2/24 softib1 1 0x8001 || fail "far child"
ip addr add 10.0.1.1/24 dev ib0.8001; ip link set ib0.8001 up
wait_for 20 "the child has carrier" 'has_carrier ib0.8001'
wait_for 20 "traffic in the partition" 'pings 10.0.1.2'
ip link add link ib0 name blue type ipoib pkey 0x8001 || fail "a child by netlink"
ip link del blue
check "the parent goes on" pings

ip link set ib0 mtu 4092
(while :; do echo 2044 > /sys/class/net/ib0/mtu; echo 4092 > /sys/class/net/ib0/mtu; done) 2> /dev/null &
writer=$!
ping -q -f -s 4000 10.0.0.2 > /dev/null 2>&1 &
sleep 5
kill $writer
wait_for 10 "traffic after many changes under a flood" pings
knob softib0 reset 500
check "gone under traffic" '[ ! -e /sys/class/net/ib0 ] && [ ! -e /sys/class/net/ib0.8001 ]'
wait_for 20 "back" "$active && [ -e /sys/class/net/ib0 ]"
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic" 'has_carrier ib0 && pings'
modprobe -r ib_ipoib || fail "ib_ipoib cannot be unloaded"
check "nothing of it is left" '! rdma res show qp | grep -q "comm \[softib\]"'
modprobe ib_ipoib

sh $fabric down
wait_for 10 "the far HCA is back" '[ -e /sys/class/infiniband/softib1 ]'
modprobe -r softib || fail "modprobe -r"
modprobe softib hcas=4 enhanced=1,0 || fail modprobe
wait_for 10 "four interfaces" '[ "$(ls -d /sys/class/net/ib* | wc -l)" = 4 ]'
flags=''
for hca in softib0 softib1 softib2 softib3; do
	name=$(sh $fabric netdev-here $hca 1)
	flags="$flags$(cut -c1-2 "/sys/class/net/$name/address") "
done
check "only the first is enhanced: $flags" '[ "$flags" = "00 80 80 80 " ]'
