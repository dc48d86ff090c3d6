# SPDX-License-Identifier: GPL-2.0-only
# a link that is ACTIVE before its driver is there; an empty cage as mlx5 tells it
log() { dmesg | grep -c 'softib0: port 1: ACTIVE'; }
load warm=1 train_ms=3000 unplugged=disabled
check "ACTIVE at registration" "$active && is_phys softib0 1 LinkUp"
check "with LIDs" '[ "$(port softib0 1 lid)" = 0x2 ] && [ "$(port softib0 1 sm_lid)" = 0x1 ] && [ "$(port softib1 1 lid)" = 0x1 ]'
check "no event has told it" '[ "$(log)" = 0 ]'
sh $fabric up
sh $fabric sm start
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "carrier, once its subnet manager runs" 'has_carrier ib0 && pings'
sh $fabric cable out
wait_for 5 "no cable: DOWN, Disabled" 'is_state softib0 1 DOWN && is_phys softib0 1 Disabled'
check "and no LID" '[ "$(port softib0 1 lid)" = 0xffff ]'
sh $fabric cable in
check "cable in: Polling" 'is_phys softib0 1 Polling'
wait_for 20 "trained: ACTIVE" "$active"
check "that is an event" '[ "$(log)" = 1 ]'
echo softib.0 > /sys/bus/platform/drivers/softib/unbind
echo softib.0 > /sys/bus/platform/drivers/softib/bind
check "a driver that leaves takes the link down" 'is_state softib0 1 DOWN'
wait_for 20 "ACTIVE again" "$active"
