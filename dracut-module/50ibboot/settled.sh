#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue/settled, the last one: sourced at each turn of dracut's loop at which udev is idle.

if [ ! -e /run/ibboot/settled ]; then
    : > /run/ibboot/settled
    # After the verdict job.sh has left its turn to this script.
    # shellcheck source=/dev/null
    [ -z "$ibboot_is_decided" ] || . /usr/lib/ibboot/netroot.sh
fi
