#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue/finished: may the boot go on? Sourced by dracut in a subshell of its own.

[ -e /run/ibboot/result ] && NEWROOT=$NEWROOT /usr/sbin/ibboot turn --finished
