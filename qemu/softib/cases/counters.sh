# SPDX-License-Identifier: GPL-2.0-only
# PortCounters raised by knobs, read through sysfs and perfquery, reset by perfquery
with_ipoib
sys=counters
for pair in symbol_error:17 link_error_recovery:3 port_rcv_errors:5 port_rcv_remote_physical_errors:6 \
	port_xmit_discards:7 port_rcv_constraint_errors:8 local_link_integrity_errors:9 \
	excessive_buffer_overrun_errors:10 VL15_dropped:11 port_xmit_wait:12; do
	knob softib0/1 "counters/${pair%:*}" "${pair#*:}"
	check "${pair%:*} is ${pair#*:}" '[ "$(port softib0 1 $sys/'"${pair%:*}"')" = '"${pair#*:}"' ]'
done
knob softib0/1 counters/symbol_error 70000
check "they stop at their maximum" '[ "$(port softib0 1 $sys/symbol_error)" = 65535 ]'
lid=$(port softib0 1 lid)
check "perfquery from the far end" 'inside perfquery "$lid" 1 | grep -q "PortXmitDiscards:\.*7$"'
check "perfquery -x" 'inside perfquery -x "$lid" 1 | grep -q "PortXmitPkts:\.*[1-9]"'
before=$(port softib0 1 counters/port_rcv_data)
pings -c 5 -i 0.2 -s 1000 10.0.0.2
check "data counts in words" '[ $(($(port softib0 1 counters/port_rcv_data) - before)) -ge 1250 ]'
inside perfquery -R "$lid" 1 > /dev/null
check "perfquery -R clears" '[ "$(port softib0 1 $sys/port_xmit_discards)" = 0 ]'
check "all of them" '[ "$(port softib0 1 $sys/symbol_error)" = 0 ]'
