# SPDX-License-Identifier: GPL-2.0-only
# a broadcast group of 4096: the IPoIB MTU is 4092; and a black hole for long datagrams
load
sh $fabric up
sh $fabric partitions 'Default=0x7fff,ipoib,mtu=5,defmember=full:ALL=full;'
sh $fabric sm start
wait_for 20 "ACTIVE" "$active"
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "carrier" 'has_carrier ib0'
wait_for 5 "MTU 4092" '[ "$(cat /sys/class/net/ib0/mtu)" = 4092 ]'
wait_for 20 "traffic" pings
check "a full datagram passes" 'pings -s 4064 -M do 10.0.0.2'
knob softib0/1 drop_above 1500
check "black hole: short ones pass" 'pings -s 1000 10.0.0.2'
check "black hole: long ones do not" '! pings -s 2000 -M do 10.0.0.2'
