#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# emergency: print the reason again, directly above the prompt of the shell, and what to type next.

[ -r /run/ibboot/result ] || return 0
{
    read -r ibboot_verdict
    read -r ibboot_reason
} < /run/ibboot/result
case $ibboot_verdict in
    failed*)
        printf 'ibboot: %s\n' "$ibboot_reason"
        printf 'ibboot:   type "ibboot check" for what failed; after a repair "ibboot up", then\n'
        printf 'ibboot:     "ibboot check"; "exit" continues the boot\n'
        ;;
esac
if [ -e /run/ibboot/netroot ] && [ ! -d "$NEWROOT/proc" ]; then
    read -r ibboot_verdict _ ibboot_reason < /run/ibboot/netroot
    case $ibboot_verdict in
        running) ibboot_reason="$ibboot_reason, and the mount has not returned" ;;
        connecting) ibboot_reason="$ibboot_reason, and nvme connect-all has not returned" ;;
    esac
    printf 'ibboot: %s\n' "no root file system over $ibboot_reason"
    printf 'ibboot:   see dmesg and the server; mount it on /sysroot by hand, then "exit"\n'
fi
unset ibboot_verdict ibboot_reason
