#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# when-up-runs.sh SIGNAL: send it to `ibboot up` once it has run for two looks: what decides about the command line is
# gone by then.

tries=1200 before=''
while [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.5
    now=''
    for process in /proc/[0-9]*; do
        comm=''
        { read -r comm < "$process/comm"; } 2> /dev/null
        [ "$comm" != ibboot ] || now=${process#/proc/}
    done
    if [ -n "$now" ] && [ "$now" = "$before" ]; then
        kill -"$1" "$now"
        exit
    fi
    before=$now
done
