#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In the initramfs, before dracut's hooks: where the root file system is the far end's, its mount and the end of the initramfs
# become records of the kernel log. Whoever gets no further in time is given up, with a record that says where.

# A boot that is compared to its root file system, or that is given up, ends in the initramfs: who managed its networks
# need not be in the real root, and dracut would wait for those who gave up themselves.
cat > /run/bench-end.sh << 'END'
journalctl -b -o short-monotonic --no-pager > /run/ibboot-test/out/journal.txt
sh /usr/lib/ibboot-test/export.sh "$1"
poweroff -f -f
END

# give_up: does so, with a record, a minute after carrier without an address, a minute after the address without the
# root file system, and five minutes after the kernel's start without carrier; else false
cat > /run/bench-give-up.sh << 'END'
give_up() {
    read -r bench_now _ < /proc/uptime
    bench_now=${bench_now%%.*}
    bench_seen=carrier bench_wanted=address
    if ip -o addr show dev ib0 2> /dev/null | grep -q 'inet 10\.0\.0\.1/'; then
        bench_seen=address bench_wanted='root file system'
    elif ! grep -qx 1 /sys/class/net/ib0/carrier 2> /dev/null; then
        bench_seen='kernel start' bench_wanted=carrier
    fi
    bench_limit=60 bench_then=0
    if [ "$bench_wanted" = carrier ]; then
        bench_limit=300
    else
        [ -e "/run/bench-$bench_seen" ] || echo "$bench_now" > "/run/bench-$bench_seen"
        read -r bench_then < "/run/bench-$bench_seen"
    fi
    [ "$bench_now" -ge $((bench_then + bench_limit)) ] || return 1
    echo "ibboot-bench: given up: no $bench_wanted within $bench_limit s of $bench_seen" > /dev/kmsg
    sh /run/bench-end.sh "given up"
}
END

# shellcheck disable=SC2154 # dracut exports hookdir
if ! grep -q ibboot-bench.root /proc/cmdline; then
    # The disk is there at once: as with a root file system of the network, the boot waits for the address.
    cat > "$hookdir/initqueue/finished/90-bench.sh" << 'END'
. /run/bench-give-up.sh
ip -o addr show dev ib0 2> /dev/null | grep -q 'inet 10\.0\.0\.1/' || give_up
END
    exit
fi

{
    findmnt --poll=mount --first-only --noheadings /sysroot > /dev/null
    echo "ibboot-bench: the root file system is mounted" > /dev/kmsg
} &
{
    . /run/bench-give-up.sh
    until grep -q ' /sysroot nfs' /proc/mounts || give_up; do
        sleep 5
    done
} &
# Behind what the others do before they leave.
cat > "$hookdir/cleanup/99-zz-bench.sh" << 'END'
echo "ibboot-bench: the initramfs is left" > /dev/kmsg
sh /run/bench-end.sh left
END

# In life a server is there before its clients start, and the client's modules are loaded in no time: under emulation
# that would take as long as all that is compared.
. /run/ibboot-fabric/lib.sh
modprobe nfsv4 || failed "modprobe nfsv4"
wait_for 120 '[ -e /run/fabric/serves ]'
say "the boot goes on"
