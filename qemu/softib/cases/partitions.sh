# SPDX-License-Identifier: GPL-2.0-only
# a partition that comes late, a child interface in it, limited membership
with_ipoib
sh $fabric partitions 'Default=0x7fff,ipoib,defmember=full:ALL=full;' \
	'Blue=0x0001,ipoib,defmember=full:ALL=full;'
wait_for 20 "0x8001 has arrived" 'grep -q 0x8001 /sys/class/infiniband/softib0/ports/1/pkeys/*'
echo 0x8001 > /sys/class/net/ib0/create_child
sh $fabric address 10.0.1.2/24 softib1 1 0x8001 || fail "far child"
ip addr add 10.0.1.1/24 dev ib0.8001; ip link set ib0.8001 up
wait_for 20 "the child has carrier" 'has_carrier ib0.8001'
wait_for 20 "traffic in the partition" 'pings 10.0.1.2'
sh $fabric partitions 'Default=0x7fff,ipoib,defmember=full:ALL=full;' \
	'Blue=0x0001,ipoib:SELF=full;'
wait_for 20 "0x8001 is taken away" '! grep -q 0x8001 /sys/class/infiniband/softib0/ports/1/pkeys/*'
wait_for 20 "no traffic in the partition" '! pings 10.0.1.2'
check "the default partition goes on" pings
sh $fabric partitions 'Default=0x7fff,ipoib,defmember=limited:ALL=limited,SELF=full;'
wait_for 20 "limited membership: 0x7fff" 'grep -q 0x7fff /sys/class/infiniband/softib0/ports/1/pkeys/0'
