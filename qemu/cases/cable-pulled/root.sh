. /run/ibboot-fabric/lib.sh
set -e
talk 10.0.0.1 10.0.0.2
fabric cable out
wait_for 30 '[ "$(cat /sys/class/net/ib0/carrier)" = 0 ]'
check 2 \
    'CRITICAL  port.physical_state        Polling' \
    '          expected LinkUp; check the cable, the transceiver and the switch port' \
    'CRITICAL: 0 of 1 links verified, required: every port that the command line names'
fabric cable in
wait_for 60 '[ "$(cat /sys/class/net/ib0/carrier)" = 1 ]'
check 0 'ok: 1 of 1 links verified'
talk 10.0.0.1 10.0.0.2
