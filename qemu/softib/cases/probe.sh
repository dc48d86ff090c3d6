# SPDX-License-Identifier: GPL-2.0-only
# eight HCAs that take a second each: one after the other, then side by side
modprobe ib_umad
at=$(seconds)
modprobe softib hcas=8 probe_ms=1000 || fail modprobe
serial=$(since "$at")
check "eight HCAs" '[ "$(ls /sys/class/infiniband | wc -l)" = 8 ]'
check "one after the other: $serial s" '! less "$serial" 8'
modprobe -r softib || fail "modprobe -r"
at=$(seconds)
modprobe softib hcas=8 probe_ms=1000 async_probe=1 || fail modprobe
half=$(awk -v s="$serial" 'BEGIN { print s / 2 }')
check "modprobe does not wait: $(since "$at") s" 'less "$(since "$at")" "$half"'
wait_for 20 "eight HCAs" '[ "$(ls /sys/class/infiniband 2>/dev/null | wc -l)" = 8 ]'
check "side by side: $(since "$at") s" 'less "$(since "$at")" "$half"'
check "names follow the slots" '[ "$(cat /sys/class/infiniband/softib7/node_guid)" = 0250:f700:0000:a070 ]'
wait_for 5 "all links up" '[ "$(grep -l INIT /sys/class/infiniband/*/ports/1/state | wc -l)" = 8 ]'
echo softib.3 > /sys/bus/platform/drivers/softib/unbind
check "unbound" '[ ! -e /sys/class/infiniband/softib3 ]'
check "its partner has lost the link" 'is_state softib2 1 DOWN'
echo softib.3 > /sys/bus/platform/drivers/softib/bind
wait_for 5 "bound again, and linked" 'is_state softib3 1 INIT && is_state softib2 1 INIT'
modprobe -r softib || fail "modprobe -r"
check "no HCA is left" '[ -z "$(ls /sys/class/infiniband)" ]'
