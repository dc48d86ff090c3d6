# SPDX-License-Identifier: GPL-2.0-only
# firmware that hangs: queries sleep where no signal reaches them; removal goes on
load ibv=1 probe_ms=0
dir=/sys/class/infiniband/softib0/ports/1
sleeps() { grep -q '^State:.D' "/proc/$1/status" 2> /dev/null; }
ended() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"; }

knob softib0 hang_ms 3000
at=$(seconds)
cat $dir/state > /dev/null
check "a state takes its time: $(since "$at") s" '! less "$(since "$at")" 3 && less "$(since "$at")" 6'
at=$(seconds)
check "the other HCA does not: $(since "$at") s" 'is_state softib1 1 INIT && less "$(since "$at")" 1'
at=$(seconds)
cat $dir/counters/port_xmit_data > /dev/null
check "nor does it help to ask for a counter" '! less "$(since "$at")" 3'

knob softib0 hang_ms 600000
cat $dir/state > /dev/null &
reader=$!
wait_for 5 "a reader sleeps uninterruptibly" "sleeps $reader"
kill -KILL $reader
stays 2 "and cannot be killed" "sleeps $reader"
ibv_devinfo -d softib0 > /dev/null 2>&1 &
opener=$!
wait_for 5 "uverbs is not opened" "sleeps $opener"
knob softib0 hang_ms 0
wait_for 2 "the firmware answers again" "ended $reader && ended $opener"
check "and at once" "$init"

knob softib0 query_error -5
check "queries fail" '! cat $dir/state > /dev/null 2>&1'
check "no context" '! ibv_devinfo -d softib0 > /dev/null 2>&1'
check "no counter" '! cat $dir/counters/port_xmit_data > /dev/null 2>&1'
check "a positive error is refused" '! sh $fabric knob softib0 query_error 5 2> /dev/null'
knob softib0 query_error 0
check "no longer" "$init"

knob softib0 hang_ms 600000
cat $dir/state > /dev/null 2>&1 &
reader=$!
ibv_devinfo -d softib0 > /dev/null 2>&1 &
wait_for 5 "a reader hangs" "sleeps $reader"
at=$(seconds)
knob softib0 present 0
check "the card is pulled meanwhile: gone in $(since "$at") s" 'less "$(since "$at")" 3'
check "its reader has ended" "ended $reader"
knob softib0 hang_ms 100
at=$(seconds)
knob softib0 present 1
check "firmware that is slow makes a slow probe: $(since "$at") s" '! less "$(since "$at")" 3'
knob softib0 hang_ms 2000
cat $dir/state > /dev/null &
at=$(seconds)
echo softib.0 > /sys/bus/platform/drivers/softib/unbind
check "a driver that is unbound waits: $(since "$at") s" '! less "$(since "$at")" 1.5 && [ ! -e $dir ]'
knob softib0 hang_ms 0
echo softib.0 > /sys/bus/platform/drivers/softib/bind
modprobe -r ib_ipoib
knob softib0 hang_ms 600000
cat $dir/state > /dev/null &
wait_for 5 "a reader hangs" "sleeps $!"
at=$(seconds)
modprobe -r softib || fail "modprobe -r"
check "the module goes as well: $(since "$at") s" '[ -z "$(ls /sys/class/infiniband)" ] && less "$(since "$at")" 3'
