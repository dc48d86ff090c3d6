# SPDX-License-Identifier: GPL-2.0-only
# a subnet manager that takes seconds from the LID to the port's state
load sweep_ms=3000,0
sh $fabric up
sh $fabric sm start
wait_for 20 "the port has its LIDs" '[ "$(port softib0 1 sm_lid)" != 0x0 ] && [ "$(port softib0 1 lid)" != 0x0 ]'
at=$(seconds)
stays 2 "and stays in INIT" "$init"
wait_for 20 "ACTIVE" "$active"
check "after its sweep: $(since "$at") s" '! less "$(since "$at")" 2.5'
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic" 'has_carrier ib0 && pings'
knob softib0/1 sweep_ms 60000
knob softib0/1 phys_state polling
wait_for 10 "retrained: INIT" "$init"
stays 4 "a sweep of a minute" "$init"
knob softib0/1 sweep_ms 0
knob softib0/1 phys_state polling
wait_for 20 "none: ACTIVE" "$active"
knob softib0/1 sweep_ms 1000
knob softib0/1 phys_state polling
wait_for 10 "a sweep begins" "$init"
knob softib0 present 0
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
stays 2 "its end finds nobody" '[ ! -e /sys/module/softib ]'
