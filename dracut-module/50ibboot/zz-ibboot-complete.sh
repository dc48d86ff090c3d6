#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Last hook of cmdline or, without systemd, pre-trigger: the command line is complete, and
# `ibboot up --early` goes on. If nothing requested ibboot before the hooks ran, or if `ibboot up`
# has ended without a request, it starts now.

# shellcheck source=/dev/null
[ "$(getcmdline)" = "$ibboot_line" ] || . /usr/lib/ibboot/cmdline.sh
unset ibboot_line
if [ ! -d /run/ibboot ]; then
    unset ibboot_late
    return 0
fi
# First the start, which does nothing if `ibboot up` runs or is about to: with the file it may end at once.
if [ -e /run/ibboot/requested ] && { [ -n "$ibboot_late" ] || [ -e /run/ibboot/ended ]; }; then
    rm -f /run/ibboot/ended
    if [ -n "$DRACUT_SYSTEMD" ]; then
        systemctl --no-block start ibboot.service
    else
        # shellcheck source=/dev/null
        . /usr/lib/ibboot/start.sh
    fi
fi
unset ibboot_late
# The shell of a later breakpoint must not use up the deadline, and may write arguments: the first turn
# of dracut's queue creates the file then.
for ibboot_break in pre-udev pre-trigger initqueue; do
    [ -e /run/ibboot/requested ] || break
    # dracut 106 stops at each breakpoint of several. getarg finds the last one only, and getargs of dracut 059
    # crashes at a bare rd.break.
    case " $(getcmdline) " in
        *" rd.break=$ibboot_break "* | *" rdbreak=$ibboot_break "*)
            unset ibboot_break
            return 0
            ;;
    esac
done
unset ibboot_break
: > /run/ibboot/complete
