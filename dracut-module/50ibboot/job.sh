#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue job, sourced at each turn of dracut's loop. Until the verdict this script stops dracut's
# own clock, because the deadline of `ibboot up` applies. Then it carries out the action of a
# failure.

read -r ibboot_now _ < /proc/uptime
ibboot_now=${ibboot_now%%.*}
# Time since the first turn, so that an earlier breakpoint does not count.
ibboot_first=${ibboot_first:-$ibboot_now}
if [ ! -e /run/ibboot/result ]; then
    if [ ! -e /run/ibboot/requested ]; then
        # This job exists because something was requested: the defaults apply.
        mkdir -p /run/ibboot
        printf 'continue\n180\nauto\n' > /run/ibboot/requested
    fi
    if [ ! -e /run/ibboot/complete ]; then
        # zz-ibboot-complete.sh left the file to this turn, or did not run because a later hook failed.
        : > /run/ibboot/complete
        [ -z "$DRACUT_SYSTEMD" ] || systemctl --no-block start ibboot.service
    fi
    # shellcheck disable=SC2034
    main_loop=0
    {
        read -r _
        read -r ibboot_timeout
    } < /run/ibboot/requested
    ibboot_ended=''
    # Firmware that does not answer can hold a process in the kernel forever, past the deadline.
    if [ "$ibboot_now" -ge "$((ibboot_first + ibboot_timeout + 30))" ]; then
        ibboot_ended="still running 30 s after its deadline"
    elif [ -n "$DRACUT_SYSTEMD" ]; then
        # shellcheck source=/dev/null
        . /usr/lib/ibboot/unit.sh
    fi
    # shellcheck source=/dev/null
    [ -z "$ibboot_ended" ] || IBBOOT_ENDED=$ibboot_ended . /usr/lib/ibboot/ended.sh
    unset ibboot_timeout ibboot_ended
    [ -e /run/ibboot/result ] || return 0
fi

ibboot_verdict='' ibboot_reason=''
{
    read -r ibboot_verdict
    read -r ibboot_reason
} < /run/ibboot/result
case $ibboot_verdict in
    verified | "failed continue" | "failed shell" | "failed reboot") ;;
    *)
        # `ibboot up` of a person has just removed it.
        [ -e /run/ibboot/result ] || return 0
        # /run was full when the result was written.
        read -r ibboot_verdict < /run/ibboot/requested
        ibboot_verdict="failed $ibboot_verdict"
        ibboot_reason="ibboot up: /run/ibboot/result cannot be read"
        ;;
esac

case $ibboot_verdict in
    "failed shell")
        if [ ! -e /run/ibboot/shell-left ]; then
            emergency_shell "ibboot: $ibboot_reason"
            : > /run/ibboot/shell-left
        fi
        ;;
    "failed reboot")
        # 10 to 40 s, at random: the nodes of a cluster fail at the same deadline, and load their images
        # from the same server. The second part of the UUID has four random digits.
        ibboot_pause=0
        { IFS=- read -r _ ibboot_pause _ < /proc/sys/kernel/random/uuid; } 2> /dev/null
        ibboot_pause=$((10 + 0x$ibboot_pause % 31))
        # Level err: the console of a quiet boot must show this line.
        { [ -e /dev/kmsg ] && printf '%s\n' "<3>ibboot: rebooting in $ibboot_pause s: $ibboot_reason" > /dev/kmsg; } 2> /dev/null \
            || printf '%s\n' "ibboot: rebooting in $ibboot_pause s: $ibboot_reason" > /dev/console
        sleep "$ibboot_pause"
        { [ -n "$DRACUT_SYSTEMD" ] && systemctl --no-block --force reboot; } \
            || reboot -f -f || echo b > /proc/sysrq-trigger
        sleep 60
        ;;
esac
unset ibboot_verdict ibboot_reason ibboot_pause

# Hooks of settled prepare what those of online use: before they have run once, this turn is left to
# settled.sh, unless udev is busy for 10 s.
ibboot_is_decided=1
# shellcheck source=/dev/null
if [ -e /run/ibboot/settled ] || [ "$ibboot_now" -ge "$((ibboot_first + 10))" ]; then
    . /usr/lib/ibboot/netroot.sh
fi
unset ibboot_now
