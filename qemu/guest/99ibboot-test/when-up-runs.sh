#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# when-up-runs.sh SIGNAL: send it to `ibboot up` once it has run for two looks after dracut's hooks.

tries=1200 before=''
while [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.5
    now=''
    # `up` that dies before is started again.
    [ -e /run/ibboot/complete ] || continue
    for process in /proc/[0-9]*; do
        comm=''
        { read -r comm < "$process/comm"; } 2> /dev/null
        [ "$comm" = ibboot ] || continue
        # The loader and the readers of devices have the same name.
        case $(tr '\0' ' ' < "$process/cmdline") in
            */ibboot" up "*) now=${process#/proc/} ;;
        esac
    done
    if [ -n "$now" ] && [ "$now" = "$before" ]; then
        kill -"$1" "$now"
        exit
    fi
    before=$now
done
