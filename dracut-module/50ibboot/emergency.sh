#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# emergency: print the reason again, directly above the prompt of the shell, and what to type next. Without
# systemd, and with it in old versions, dracut calls this hook also if no shell opens.

[ -r /run/ibboot/result ] || return 0
ibboot_shell=''
if getargbool 1 rd.shell || getarg rd.break > /dev/null || getarg rdbreak > /dev/null; then
    ibboot_shell=1
fi
{
    read -r ibboot_verdict
    read -r ibboot_reason
} < /run/ibboot/result
case $ibboot_verdict in
    verified) ;;
    *)
        # /run was full when the result was written.
        printf 'ibboot: %s\n' "${ibboot_reason:-ibboot up: /run/ibboot/result cannot be read}"
        if [ -n "$ibboot_shell" ]; then
            printf 'ibboot:   type "ibboot check" to see what failed; after a repair, type\n'
            printf 'ibboot:     "ibboot up", then "ibboot check"; type "exit" to continue the boot\n'
        fi
        ;;
esac
if [ -e /run/ibboot/netroot ] && [ ! -d "$NEWROOT/proc" ]; then
    read -r ibboot_verdict _ ibboot_reason < /run/ibboot/netroot
    case $ibboot_verdict in
        running) ibboot_reason="$ibboot_reason, and the mount has not returned" ;;
        connecting) ibboot_reason="$ibboot_reason, and nvme connect-all has not returned" ;;
    esac
    printf 'ibboot: %s\n' "no root file system over $ibboot_reason"
    if [ -n "$ibboot_shell" ]; then
        printf 'ibboot:   read dmesg and the log of the server; mount the root file system on\n'
        printf 'ibboot:     /sysroot by hand, then type "exit"\n'
    fi
fi
unset ibboot_verdict ibboot_reason ibboot_shell
