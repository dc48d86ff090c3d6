# SPDX-License-Identifier: GPL-2.0-only
# a virtual function: no node GUID, a port GUID that comes late, GRH required, DOWN though LinkUp
guid=/sys/class/infiniband/softib0/node_guid
load node_guid=0 grh_required=1,0 force_state=down,none
check "no node GUID" '[ "$(cat $guid)" = 0000:0000:0000:0000 ]'
check "the far end has its own" '[ "$(cat /sys/class/infiniband/softib1/node_guid)" = 0250:f700:0000:a010 ]'
check "DOWN and LinkUp" 'is_state softib0 1 DOWN && is_phys softib0 1 LinkUp'
sh $fabric up
sh $fabric sm start
stays 3 "a subnet manager does not help" 'is_state softib0 1 DOWN && is_phys softib0 1 LinkUp'
check "it knows the node" 'inside smpquery -D nodeinfo 0,1 | grep -q "^Guid:.*0x0250f7000000a000"'
knob softib0/1 force_state none
wait_for 20 "its policy lets it up: ACTIVE" "$active"
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic, with a GRH" 'has_carrier ib0 && pings'
check "MADs without one are lost" '! saquery -t 500 CPI > /dev/null 2>&1'

# opensm 3.3.23 does not survive a port whose GUID changes between two sweeps
sh $fabric sm stop
knob softib0/1 force_state down
knob softib0/1 guid 0x0250f70000001234
check "the port has another GUID" '[ "$(knob softib0/1 guid)" = 0x0250f70000001234 ]'
wait_for 5 "in its GID" 'grep -q 0250:f700:0000:1234 /sys/class/infiniband/softib0/ports/1/gids/0'
sh $fabric sm start
knob softib0/1 force_state none
wait_for 20 "ACTIVE" "$active"
wait_for 20 "in the address of its interface" 'grep -q "02:50:f7:00:00:00:12:34$" /sys/class/net/ib0/address'
wait_for 40 "traffic" 'ip neigh flush dev ib0; pings'
sh $fabric sm stop
knob softib0 node_guid 0x0250f70000001230
knob softib0 grh_required 0
check "a node GUID counts from the next probe on" '[ "$(cat $guid)" = 0000:0000:0000:0000 ]'
echo softib.0 > /sys/bus/platform/drivers/softib/unbind
echo softib.0 > /sys/bus/platform/drivers/softib/bind
check "here it is" '[ "$(cat $guid)" = 0250:f700:0000:1230 ]'
sh $fabric sm start
wait_for 20 "ACTIVE" "$active"
wait_for 20 "MADs need no GRH" 'saquery -t 500 CPI > /dev/null 2>&1'
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
modprobe softib port_guid=0,0x0250f70000005678 || fail "modprobe"
check "no port GUID" 'grep -q fe80:0000:0000:0000:0000:0000:0000:0000 /sys/class/infiniband/softib0/ports/1/gids/0'
check "another one" 'grep -q 0250:f700:0000:5678 /sys/class/infiniband/softib1/ports/1/gids/0'
