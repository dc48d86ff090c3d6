#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by job.sh after the verdict, on each turn of dracut's queue: dracut goes on over every interface that is
# verified. That is done beside the queue: a mount over a path that breaks may never return, and the limit must pass.

read -r ibboot_now _ < /proc/uptime
ibboot_now=${ibboot_now%%.*}
ibboot_state=none ibboot_since=$ibboot_now ibboot_what=''
[ ! -e /run/ibboot/netroot ] || read -r ibboot_state ibboot_since ibboot_what < /run/ibboot/netroot
ibboot_since=$((ibboot_now - ibboot_since))

if [ "$ibboot_state" = running ]; then
    if [ "$ibboot_since" -ge "${ibboot_patience:-30}" ]; then
        ibboot_patience=$((${ibboot_patience:-30} + 30))
        echo "<3>ibboot: $ibboot_what: still not mounted, and the mount has not returned for $ibboot_since s" > /dev/kmsg
    fi
    return 0
fi

# shellcheck source=/dev/null
. /usr/lib/ibboot/turns.sh
# shellcheck source=/dev/null
. /usr/lib/ibboot/root.sh
# Those that mount the root themselves do not tell whether they could, nor does nvme: a server may yet come.
if [ "$ibboot_state" = ended ] && [ "$ibboot_since" -ge 5 ]; then
    ibboot_missing=''
    case ${ibboot_root%%:*} in
        nfs | nfs4 | cifs | smb) [ -d "$NEWROOT/proc" ] || ibboot_missing=root ;;
    esac
    if [ -n "$ibboot_nvme" ]; then
        ibboot_missing=nvme
        for ibboot_name in /sys/class/nvme-fabrics/ctl/nvme*; do
            [ ! -e "$ibboot_name" ] || ibboot_missing=''
        done
    fi
    if [ -n "$ibboot_missing" ]; then
        ibboot_todo=$ibboot_again$ibboot_todo
        echo "<3>ibboot: $ibboot_what: not mounted, trying again" > /dev/kmsg
    fi
fi
[ -n "$ibboot_todo" ] || return 0

ibboot_what=${ibboot_todo# }
# What is shown has no password and no token in it, as in ibboot's own lines; NFS has neither.
case $ibboot_root in
    nfs:[!/]* | nfs:/[!/]* | nfs4:[!/]* | nfs4:/[!/]*) ;;
    *)
        case $ibboot_root in *@*) ibboot_root="****@${ibboot_root##*@}" ;; esac
        case $ibboot_root in *[?#]*) ibboot_root="${ibboot_root%%[?#]*}?****" ;; esac
        ;;
esac
[ -z "$ibboot_root" ] || ibboot_what="$ibboot_what: $(printf %s "$ibboot_root" | tr -c '[:graph:]' '?')"
ibboot_patience=30
echo "running $ibboot_now $ibboot_what" > /run/ibboot/netroot
# shellcheck source=/dev/null
(. /usr/lib/ibboot/online.sh) &
