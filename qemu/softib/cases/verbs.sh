# SPDX-License-Identifier: GPL-2.0-only
# the verbs self-test between two ACTIVE ports, then once more
modprobe ib_umad; modprobe ib_cm; modprobe softib || fail "modprobe softib"
OSM_CACHE_DIR=/run OSM_TMP_DIR=/run opensm -B -s 1 -g 0x0250f7000000a011 -f /run/opensm.log > /dev/null
for hca in softib0 softib1; do wait_for 20 "$hca ACTIVE" "is_state $hca 1 ACTIVE"; done
for round in 1 2; do
	modprobe softib_selftest || { dmesg | grep softib_selftest; fail "round $round of the self-test"; }
	check "27 cases, none failed" '[ "$(dmesg | grep -c "softib_selftest: 27 tests, 0 failed")" = $round ]'
	modprobe -r softib_selftest
done
