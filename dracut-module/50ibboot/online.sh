#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by netroot.sh in a shell of its own: what dracut's network modules do when an interface is up.

# shellcheck disable=SC2154
for ibboot_name in $ibboot_todo; do
    case $ibboot_ours in
        *" $ibboot_name "*)
            if [ ! -e "/run/ibboot/online-$ibboot_name" ]; then
                : > "/run/ibboot/online-$ibboot_name"
                source_hook initqueue/online "$ibboot_name"
            fi
            ;;
    esac
    [ ! -x /sbin/netroot ] || IBBOOT_TURN=1 /sbin/netroot "$ibboot_name"
done
# dracut connects to NVMe servers once, as soon as udev is quiet: before there is a way to them.
[ -z "$ibboot_nvme" ] || nvme connect-all
read -r ibboot_now _ < /proc/uptime
# shellcheck disable=SC2154
echo "ended ${ibboot_now%%.*} $ibboot_what" > /run/ibboot/netroot
