#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue/finished: reports whether the boot may continue. dracut sources this script in a
# subshell.

# shellcheck disable=SC2154
[ -e /run/ibboot/result ] && netroot=$netroot NEWROOT=$NEWROOT /usr/sbin/ibboot --limit 10 turn --finished
