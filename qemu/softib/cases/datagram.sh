# SPDX-License-Identifier: GPL-2.0-only
# without a subnet manager INIT; with one ACTIVE, then carrier, then traffic
load
sh $fabric up || fail "fabric up"
wait_for 5 "INIT, LinkUp" "$init && is_phys softib0 1 LinkUp"
stays 2 "and stays so without a subnet manager" "$init"
check "no SM LID" '[ "$(port softib0 1 sm_lid)" = 0x0 ]'
check "link layer InfiniBand" '[ "$(port softib0 1 link_layer)" = InfiniBand ]'
check "rate 40 Gb/sec" '[ "$(port softib0 1 rate)" = "40 Gb/sec (4X QDR)" ]'
check "only the near HCA is seen" '[ "$(ls /sys/class/infiniband)" = softib0 ]'
sh $fabric sm start
wait_for 20 "ACTIVE" "$active"
check "LIDs are there" '[ "$(port softib0 1 lid)" != 0x0 ] && [ "$(port softib0 1 sm_lid)" != 0x0 ]'
sh $fabric address 10.0.0.2/24 || fail "far address"
ip addr add 10.0.0.1/24 dev ib0
ip link set ib0 up
wait_for 20 "carrier" 'has_carrier ib0'
wait_for 5 "MTU 2044, by the broadcast group" '[ "$(cat /sys/class/net/ib0/mtu)" = 2044 ]'
wait_for 20 "ping" pings
check "a full datagram passes" 'pings -s 2016 -M do 10.0.0.2'
check "a longer one does not" '! pings -s 2017 -M do 10.0.0.2 2> /dev/null'
check "sminfo" 'sminfo | grep -q SMINFO_MASTER'
check "saquery" '[ "$(saquery NR 2>/dev/null | grep -c "node_guid")" = 2 ]'
check "ibstat agrees" 'ibstat softib0 1 | grep -q "State: Active"'
