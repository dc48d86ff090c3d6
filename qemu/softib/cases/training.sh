# SPDX-License-Identifier: GPL-2.0-only
# a link that trains for three seconds; a pull in the middle restarts the training
at=$(seconds)
load train_ms=3000
sh $fabric up
sh $fabric sm start
check "Polling" 'is_phys softib0 1 Polling && is_state softib0 1 DOWN'
wait_for 20 "ACTIVE" "$active"
check "not before three seconds: $(since "$at")" '! less "$(since "$at")" 3'
check "one training: the SM changed the MTU and left the wire alone" \
	'[ "$(port softib0 1 counters/link_downed)" = 0 ] && [ "$(inside cat /sys/class/infiniband/softib1/ports/1/counters/link_downed)" = 0 ]'
sh $fabric cable out
sh $fabric cable in
at=$(seconds)
sleep 2
sh $fabric cable out
sh $fabric cable in
stays 2 "a pull starts the training anew" 'is_phys softib0 1 Polling'
wait_for 20 "ACTIVE" "$active"
knob softib0/1 train_ms 0; knob softib1/1 train_ms 0
sh $fabric cable out; sh $fabric cable in
wait_for 5 "trained at once" 'is_phys softib0 1 LinkUp'
