set -ex
grep '^10.0.0.2:/ / nfs4 ' /proc/mounts
# The unit of the real root comes after the switch.
journalctl -b --no-pager -o short-monotonic | awk '
    /systemd\[1\]: Switching root/ { switched = 1; exit }
    / Starting .*Wait for Network to be (Configured|Online)/ { started = 1 }
    /Wait for Network to be (Configured|Online) .*skipped/ { skipped = 1; print }
    END { exit !(switched && skipped && !started) }'
