# SPDX-License-Identifier: GPL-2.0-only
# width, speed and MTU of a port, as shown by the kernel, the tools and the SM
with_sm
check "40 Gb/sec" '[ "$(port softib0 1 rate)" = "40 Gb/sec (4X QDR)" ]'
knob softib0/1 width 1x
wait_for 20 "1X: ACTIVE again" "$active"
check "10 Gb/sec at 1X" '[ "$(port softib0 1 rate)" = "10 Gb/sec (1X QDR)" ]'
check "the other end too" 'inside grep -q "10 Gb/sec (1X QDR)" /sys/class/infiniband/softib1/ports/1/rate'
knob softib0/1 width 4x
knob softib0/1 speed sdr
wait_for 20 "SDR: ACTIVE again" "$active"
check "10 Gb/sec at SDR" '[ "$(port softib0 1 rate)" = "10 Gb/sec (4X SDR)" ]'
for hca in softib0 softib1; do knob $hca/1 speed edr; done
wait_for 20 "EDR: ACTIVE again" "$active"
check "100 Gb/sec" '[ "$(port softib0 1 rate)" = "100 Gb/sec (4X EDR)" ]'
check "smpquery says 25.78125 Gbps" 'smpquery -D portinfo 0 1 | grep -q "LinkSpeedExtActive:.*25.78125"'
check "ibstat says 100" 'ibstat softib0 1 | grep -q "Rate: 100"'
knob softib1/1 speed hdr; knob softib0/1 speed hdr
wait_for 20 "HDR: ACTIVE again" "$active"
check "200 Gb/sec" '[ "$(port softib0 1 rate)" = "200 Gb/sec (4X HDR)" ]'
knob softib0/1 mtu 1024
wait_for 20 "MTU 1024: ACTIVE again" "$active"
check "the SM sets NeighborMTU 1024" 'smpquery -D portinfo 0 1 | grep -q "NeighborMTU:\.*1024"'
check "an impossible one is refused" '! sh $fabric knob softib0/1 mtu 1500 2> /dev/null'
knob softib0/1 mtu 4096
wait_for 20 "MTU 4096: ACTIVE again" "$active"
wait_for 10 "NeighborMTU 4096" 'smpquery -D portinfo 0 1 | grep -q "NeighborMTU:\.*4096"'
knob softib0/1 drop_above 1000
