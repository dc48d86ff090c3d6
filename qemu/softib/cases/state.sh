# SPDX-License-Identifier: GPL-2.0-only
# a port held in a state, whatever the subnet manager sets
with_sm
knob softib0/1 force_state init
wait_for 5 "held in INIT" "$init"
stays 3 "the subnet manager cannot move it" "$init && is_phys softib0 1 LinkUp"
knob softib0/1 force_state armed
stays 3 "stuck at ARMED" 'is_state softib0 1 ARMED'
knob softib0/1 force_state down
check "DOWN" 'is_state softib0 1 DOWN'
knob softib0/1 force_state none
wait_for 20 "let go: ACTIVE" "$active"
sh $fabric sm stop
knob softib0/1 phys_state polling
wait_for 5 "retrained without a subnet manager: INIT" "$init"
knob softib0/1 force_state active
check "ACTIVE although nobody has made it so" "$active"
