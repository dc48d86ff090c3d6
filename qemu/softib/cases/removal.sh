# SPDX-License-Identifier: GPL-2.0-only
# hot removal and firmware reset, under traffic
with_ipoib
ping -i 0.01 10.0.0.2 > /dev/null 2>&1 &
at=$(seconds)
knob softib0 present 0
check "gone in $(since "$at") s" 'less "$(since "$at")" 3'
check "no device, no interface" '[ ! -e /sys/class/infiniband/softib0 ] && [ ! -e /sys/class/net/ib0 ]'
check "the far end polls" 'inside grep -q Polling /sys/class/infiniband/softib1/ports/1/phys_state'
check "an empty slot cannot be emptied" '! sh $fabric knob softib0 present 0 2> /dev/null'
knob softib0 present 1
wait_for 20 "back: ACTIVE" "$active"
wait_for 5 "and its interface" '[ -e /sys/class/net/ib0 ]'
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic" 'has_carrier ib0 && pings'
ping -i 0.01 10.0.0.2 > /dev/null 2>&1 &
knob softib0/1 counters/symbol_error 99
knob softib0 reset 2000
check "reset: gone" '[ ! -e /sys/class/infiniband/softib0 ]'
check "reset is under way" '[ "$(knob softib0 reset)" = resetting ]'
wait_for 10 "reset: back" '[ -e /sys/class/infiniband/softib0 ]'
wait_for 20 "reset: ACTIVE" "$active"
check "its counters are zero" '[ "$(port softib0 1 counters/symbol_error)" = 0 ]'
modprobe -r ib_ipoib; modprobe ib_ipoib
knob softib0 present 0
sh $fabric sm stop
at=$(seconds)
knob softib1 present 0
check "the far HCA goes as well, without a subnet manager" 'less "$(since "$at")" 3'
