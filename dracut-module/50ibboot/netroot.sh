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

ibboot_todo='' ibboot_again='' ibboot_ours=''
[ ! -r /run/ibboot/interfaces ] || while read -r ibboot_word ibboot_name; do
    ibboot_ours="$ibboot_ours $ibboot_name "
    case $ibboot_word in
        # network-legacy would let the boot wait for this one.
        # shellcheck disable=SC2154
        offline) rm -f "$hookdir/initqueue/finished/wait-$ibboot_name.sh" ;;
        online)
            if [ -e "/run/ibboot/online-$ibboot_name" ]; then
                ibboot_again="$ibboot_again $ibboot_name"
            else
                ibboot_todo="$ibboot_todo $ibboot_name"
            fi
            ;;
    esac
done < /run/ibboot/interfaces
# Interfaces of other network modules that were held (hold.sh): their `online` hooks have run.
for ibboot_name in /run/ibboot/held-*; do
    ibboot_name=${ibboot_name#/run/ibboot/held-}
    case $ibboot_ours in
        *" $ibboot_name "*) continue ;;
    esac
    if [ "$ibboot_name" = '*' ]; then
        continue
    elif [ -e "/run/ibboot/online-$ibboot_name" ]; then
        ibboot_again="$ibboot_again $ibboot_name"
    else
        : > "/run/ibboot/online-$ibboot_name"
        ibboot_todo="$ibboot_todo $ibboot_name"
    fi
done
# What the command line names, or the DHCP server of the boot device: `netroot` takes it from there.
# shellcheck disable=SC2154
ibboot_root=$netroot
if [ "$ibboot_root" = dhcp ] && [ -r /tmp/net.bootdev ]; then
    read -r ibboot_name < /tmp/net.bootdev
    # shellcheck source=/dev/null
    ibboot_root=$(
        new_root_path=''
        [ ! -r "/tmp/dhclient.$ibboot_name.dhcpopts" ] || . "/tmp/dhclient.$ibboot_name.dhcpopts"
        case $new_root_path in
            /* | [0-9]*:/*) new_root_path=nfs:$new_root_path ;;
        esac
        printf %s "${new_root_path:-dhcp}"
    )
fi
# Debian's nvme-cli comes with a file that has nothing but comments.
ibboot_nvme=''
if [ -r /etc/nvme/discovery.conf ]; then
    while read -r ibboot_word _; do
        case $ibboot_word in
            '' | '#'*) ;;
            *) ibboot_nvme=nvme ;;
        esac
    done < /etc/nvme/discovery.conf
fi
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
[ -z "$ibboot_root" ] || ibboot_what="$ibboot_what: $(printf %s "$ibboot_root" | tr -c '[:graph:]' '?')"
ibboot_patience=30
echo "running $ibboot_now $ibboot_what" > /run/ibboot/netroot
# shellcheck source=/dev/null
(. /usr/lib/ibboot/online.sh) &
