#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In the initramfs, before udev: everything that happens to ib0 becomes a record of the kernel log, whoever does it.

ip -o monitor link address | while read -r line; do
    case $line in
        *ib0*) echo "ibboot-bench: event $line" > /dev/kmsg ;;
    esac
done &

# The disk is there at once: as with a root file system of the network, the boot waits for the address. Who has none a
# minute after carrier gets none.
# shellcheck disable=SC2154 # dracut exports hookdir
cat > "$hookdir/initqueue/finished/90-bench.sh" << 'END'
ip -o addr show dev ib0 2> /dev/null | grep -q 'inet 10\.0\.0\.1/' || {
    read -r bench_now _ < /proc/uptime
    bench_now=${bench_now%%.*}
    [ -e /run/bench-carrier ] || ! grep -qx 1 /sys/class/net/ib0/carrier 2> /dev/null || echo "$bench_now" > /run/bench-carrier
    [ "$bench_now" -ge 300 ] || {
        [ -e /run/bench-carrier ] && read -r bench_then < /run/bench-carrier && [ "$bench_now" -ge $((bench_then + 60)) ]
    }
}
END
