set -ex
grep '^10.0.0.2:/ / nfs4 ' /proc/mounts
# dracut's limit for the unit is 120 s. The unit of the real root comes after the switch.
journalctl -b --no-pager -o short-monotonic | awk -F '[][]' '
    /systemd\[1\]: Switching root/ { switched = 1; exit }
    / Starting .*Wait for Network to be Configured/ { waits = 1; since = $2 }
    waits && $2 - since > longest { longest = $2 - since }
    / (Finished|Failed to start|Stopped) .*Wait for Network to be Configured/ { waits = 0 }
    END {
        print "systemd-networkd-wait-online.service of the initramfs: " longest + 0 " s"
        exit !(switched && longest < 30)
    }'
