# SPDX-License-Identifier: GPL-2.0-only
# no cable, a late one, one that is pulled under traffic
load cable=0
sh $fabric up
sh $fabric sm start
wait_for 5 "no cable: DOWN, Polling" 'is_state softib0 1 DOWN && is_phys softib0 1 Polling'
stays 2 "and stays so" 'is_state softib0 1 DOWN'
sh $fabric cable in softib1 1
stays 1 "one end plugged in is not enough" 'is_state softib0 1 DOWN'
sh $fabric cable in
wait_for 20 "cable in: ACTIVE" "$active"
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic" 'has_carrier ib0 && pings'
ping -i 0.01 10.0.0.2 > /dev/null &
before=$(port softib0 1 counters/link_downed)
sh $fabric cable out
wait_for 5 "pulled: DOWN, Polling, no carrier" 'is_state softib0 1 DOWN && ! has_carrier ib0'
check "link_downed counts it: $before before" '[ "$(port softib0 1 counters/link_downed)" = $((before + 1)) ]'
sh $fabric cable in
wait_for 20 "back: ACTIVE" "$active"
wait_for 20 "traffic again" 'has_carrier ib0 && pings'
knob softib0/1 phys_state disabled
wait_for 5 "disabled: DOWN, Disabled" 'is_state softib0 1 DOWN && is_phys softib0 1 Disabled'
check "the far end polls" 'inside grep -q Polling /sys/class/infiniband/softib1/ports/1/phys_state'
knob softib0/1 phys_state polling
wait_for 20 "enabled: ACTIVE" "$active"
inside ibportstate -D 0,1 1 disable > /dev/null
wait_for 5 "disabled by the other end" 'is_phys softib0 1 Disabled'
