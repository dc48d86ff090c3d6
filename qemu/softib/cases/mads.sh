# SPDX-License-Identifier: GPL-2.0-only
# management datagrams dropped and delayed by class, joins refused
with_sm
knob softib0/1 mad 'sa drop all'
ip link set ib0 up
stays 4 "SA silent: ACTIVE, no carrier" "$active && ! has_carrier ib0"
check "the SM is alive" 'sminfo > /dev/null 2>&1'
check "saquery gets no answer" '! saquery -t 500 NR > /dev/null 2>&1'
knob softib0/1 mad 'sa pass'
wait_for 40 "SA answers: carrier" 'has_carrier ib0'

knob softib0/1 mad 'smp drop all'
check "SM silent: sminfo gets no answer" '! sminfo -t 500 > /dev/null 2>&1'
# opensm retrains a link whose other end does not answer
wait_for 20 "the SM gives the port up: INIT" "$init"
stays 3 "SM silent: INIT for ever" "! $active"
knob softib0/1 mad 'smp pass'
wait_for 30 "SM heard again: ACTIVE" "$active"
stays 3 "and it stays so" "$active"

knob softib0/1 mad 'sa delay 1500'
at=$(seconds)
check "SA late: answered" 'saquery -t 10000 CPI > /dev/null 2>&1'
check "and late it was, $(since "$at") s" '! less "$(since "$at")" 1.5'
knob softib0/1 mad 'perf drop 1'
lid=$(port softib0 1 sm_lid)
check "the next one is lost" '! perfquery -t 500 "$lid" 1 > /dev/null 2>&1'
check "the one after it is not" 'perfquery "$lid" 1 > /dev/null'
check "the rule is used up" 'knob softib0/1 mad | grep -q "perf pass"'
knob softib0/1 mad 'perf delay 60000'
check "one is under way for a minute" '! perfquery -t 500 "$lid" 1 > /dev/null 2>&1'
knob softib0/1 mad 'sa delay 100'
check "a short delay does not wait for a long one" 'saquery -t 2000 CPI > /dev/null 2>&1'
knob softib0/1 mad 'perf pass'
check "unknown classes are refused" '! sh $fabric knob softib0/1 mad "foo drop all" 2> /dev/null'
knob softib0/1 mad 'sa pass'

ip link set ib0 down
wait_for 10 "no carrier" '! has_carrier ib0'
knob softib0/1 fail_joins 3
ip link set ib0 up
wait_for 60 "three joins refused" '[ "$(knob softib0/1 fail_joins)" = 0 ]'
wait_for 60 "then carrier" 'has_carrier ib0'
check "the kernel has heard why" 'dmesg | grep -q "multicast join failed.*status -22"'
