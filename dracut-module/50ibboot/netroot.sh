#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by job.sh after the verdict, on each turn of dracut's queue: `ibboot turn` prints the next
# steps of dracut. A background shell carries out the steps: a mount over a broken path may never
# return, and dracut's queue must continue until its own time limit. `hold` stops dracut's clock while
# a download or a login goes on.

# A background shell that was killed, or whose last command failed, has not written its end.
ibboot_idle=--idle
[ -z "$ibboot_shell_pid" ] || ! kill -0 "$ibboot_shell_pid" 2> /dev/null || ibboot_idle=
# shellcheck disable=SC2086,SC2154
ibboot_steps=$(hookdir=$hookdir netroot=$netroot NEWROOT=$NEWROOT /usr/sbin/ibboot --limit 10 turn $ibboot_idle)
if [ "$ibboot_steps" = hold ]; then
    # shellcheck disable=SC2034
    main_loop=0
elif [ -n "$ibboot_steps" ]; then
    (
        printf '%s\n' "$ibboot_steps" | while read -r ibboot_word ibboot_name; do
            case $ibboot_word in
                # A hook may exit: the next steps follow all the same. A hook that runs once removes $job, which is
                # ibboot's here.
                online) (unset job && source_hook initqueue/online "$ibboot_name") ;;
                mount) [ ! -x /sbin/netroot ] || IBBOOT_TURN=1 /sbin/netroot "$ibboot_name" ;;
                # The files of the image only, as nvmf-autoconnect.sh: the servers of the firmware (NBFT) are dracut's.
                nvme)
                    case $(nvme connect-all --help 2>&1) in
                        *--no-nbft*) nvme connect-all --no-nbft ;;
                        *) nvme connect-all ;;
                    esac
                    ;;
            esac < /dev/null
        done
        /usr/sbin/ibboot --limit 10 turn --ended
    ) &
    ibboot_shell_pid=$!
fi
unset ibboot_steps ibboot_idle
