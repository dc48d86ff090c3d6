#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Runs after `ibboot up` has ended in any way, or 30 s after its deadline. If `ibboot up` left no verdict, this
# script writes one, so that a crash is reported on the console and the boot does not wait.

umask 022
if [ -e /run/ibboot/requested ] && [ ! -e /run/ibboot/result ]; then
    read -r ibboot_onfail < /run/ibboot/requested
    ibboot_reason="ibboot up: no verdict: ${IBBOOT_ENDED:-$EXIT_CODE $EXIT_STATUS; see dmesg}"
    printf 'failed %s\n%s\n' "$ibboot_onfail" "$ibboot_reason" > /run/ibboot/result.ended
    mv /run/ibboot/result.ended /run/ibboot/result
    # Whether a shell may open is decided by dracut (rd.shell=).
    case $ibboot_onfail in
        shell) ibboot_reason="$ibboot_reason; rd.ib.onfail=shell applies" ;;
        reboot) ibboot_reason="$ibboot_reason; the node reboots" ;;
        *) ibboot_reason="$ibboot_reason; the boot continues" ;;
    esac
    # With ProtectKernelLogs= in a drop-in, ibboot.service has the kernel's log as its standard input only.
    # With printk.devkmsg=off nobody may write to that log.
    { [ -e /dev/kmsg ] && printf '%s\n' "<3>ibboot: $ibboot_reason" > /dev/kmsg; } 2> /dev/null \
        || { [ -c /proc/self/fd/0 ] && [ ! -t 0 ] && [ ! /proc/self/fd/0 -ef /dev/null ] && printf '%s\n' "<3>ibboot: $ibboot_reason" > /proc/self/fd/0; } 2> /dev/null \
        || printf '%s\n' "ibboot: $ibboot_reason" > /dev/console
    unset ibboot_onfail ibboot_reason
elif [ -d /run/ibboot ] && [ ! -e /run/ibboot/requested ]; then
    # Nothing is requested yet: if a hook still requests something, zz-ibboot-complete.sh starts `ibboot up`
    # again, whose result is another one.
    rm -f /run/ibboot/result
    : > /run/ibboot/ended
    # The hooks may have requested something meanwhile.
    # The directory itself may be busy: in ibboot.service it is a mount point. cleanup.sh removes it.
    [ ! -e /run/ibboot/complete ] || [ -e /run/ibboot/requested ] || rm -rf /run/ibboot 2> /dev/null
fi
