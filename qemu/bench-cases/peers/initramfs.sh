#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In the initramfs, before udev: everything that happens to ib0 becomes a record of the kernel log, whoever does it.

ip -o monitor link address | while read -r line; do
    case $line in
        *ib0*) echo "ibboot-bench: event $line" > /dev/kmsg ;;
    esac
done &
