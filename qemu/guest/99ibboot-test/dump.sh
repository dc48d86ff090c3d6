#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-pivot, in a kernel that saves the dump of one that crashed: what kdump does then, with as much of the dump as the
# disk has room for.

[ -e /proc/vmcore ] || return 0
ibboot_test_out=/run/ibboot-test/out
mkdir -p "$NEWROOT/var/crash"
{
    dd if=/proc/vmcore "of=$NEWROOT/var/crash/vmcore" bs=1M count=64 conv=fsync
    cmp -n 67108864 /proc/vmcore "$NEWROOT/var/crash/vmcore" && echo "written"
    # The kernel that crashed notes the time, ahead of its memory.
    head -c 65536 "$NEWROOT/var/crash/vmcore" | tr -c '[:print:]' '\n' | grep '^CRASHTIME='
} > "$ibboot_test_out/dump.txt" 2>&1
ls /run/ibboot > "$ibboot_test_out/dump-ibboot.txt" 2>&1
find /lib/modules/ -name '*.ko*' > "$ibboot_test_out/dump-modules.txt"
cat /proc/modules > "$ibboot_test_out/dump-loaded.txt"
sh /usr/lib/ibboot-test/export.sh dump
echo b > /proc/sysrq-trigger
