# SPDX-License-Identifier: GPL-2.0-only
# events that are lost, doubled, late; the trace of a card replayed
with_sm ibv=1 sm_change=0
ibv_asyncwatch -d softib0 > /tmp/events 2>&1 &
wait_for 5 "watching" 'grep -q "async event FD" /tmp/events'
heard() { sed -n 's/.*IBV_EVENT_\([A-Z_]*\).*/\1/p' /tmp/events; }
count() { heard | grep -cx "$1"; }
refused() { ! sh $fabric knob softib0/1 events "$1" 2> /dev/null; }

knob softib0/1 events 'drop port_active 1'
check "the script can be read" '[ "$(knob softib0/1 events | tr "\n" ";")" = "drop sm_change;drop port_active 1;" ]'
sh $fabric cable out; sh $fabric cable in
wait_for 20 "ACTIVE again" "$active"
stays 1 "and nobody hears of it" '[ "$(count PORT_ACTIVE)" = 0 ]'
sh $fabric cable out; sh $fabric cable in
wait_for 20 "the next one is heard" '[ "$(count PORT_ACTIVE)" = 1 ]'
before=$(count PORT_ERR)
knob softib0/1 events 'dup port_err 1'
sh $fabric cable out
wait_for 2 "PORT_ERR is heard twice" '[ "$(count PORT_ERR)" = $((before + 2)) ]'
knob softib0/1 events 'delay 2000 port_active'
sh $fabric cable in
wait_for 20 "ACTIVE" "$active"
stays 1 "the event is late" '[ "$(count PORT_ACTIVE)" = 1 ]'
wait_for 5 "and comes" '[ "$(count PORT_ACTIVE)" = 2 ]'
stays 1 "once" '[ "$(count PORT_ACTIVE)" = 2 ]'

# as mlx5 may order them; the clock starts with the port's own PORT_ERR
knob softib0/1 events '# ibboot hardware-report, mlx5_0 port 1
drop any
start port_err
400000000 port_active

100000000 lid_change
200000000 pkey_change
0 port_err
300000000 client_reregister
1500000000 lid_change'
check "the trace waits" '[ "$(knob softib0/1 events | sed -n "/^start/,\$p" | sed -n 2p)" = "0 port_err" ]'
lines=$(heard | wc -l)
stays 1 "for its start" '[ "$(heard | wc -l)" = "$lines" ]'
knob softib0/1 phys_state polling
at=$(seconds)
wait_for 3 "five events" '[ "$(heard | wc -l)" = $((lines + 5)) ]'
check "in the order of their times" '[ "$(heard | tail -5 | tr "\n" " ")" = "PORT_ERR LID_CHANGE PKEY_CHANGE CLIENT_REREGISTER PORT_ACTIVE " ]'
wait_for 5 "the sixth" '[ "$(heard | tail -1)" = LID_CHANGE ]'
check "at its time: $(since "$at") s" '! less "$(since "$at")" 1.4'
check "its own events are still lost" '[ "$(heard | wc -l)" = $((lines + 6)) ]'

check "without SM_CHANGE all the time" '[ "$(count SM_CHANGE)" = 0 ]'
for line in foo '12 foo' 'drop foo' 'drop port_active x' 'delay port_active' '-1 port_active' 'drop port_active 1 2'; do
	check "refused: $line" 'refused "$line"'
done
check "what is refused changes nothing" 'knob softib0/1 events | grep -q "drop port_active"'
knob softib0/1 events '3600000000000 port_active'
check "pending: $(knob softib0/1 events | tail -1)" 'knob softib0/1 events | grep -q "^359.* port_active"'
knob softib0/1 events '100000000 port_active
200000000 port_active
300000000 port_active'
knob softib0 present 0
sh $fabric sm stop
stays 1 "the card goes under its events" '[ ! -e /sys/class/infiniband/softib0 ]'
knob softib1/1 events '1000000000 port_active'
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
stays 2 "and the module" '[ ! -e /sys/module/softib ]'
