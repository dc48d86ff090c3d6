#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cleanup: stop waiting for links that are not required, and configure the network programs of the
# real root.

if [ ! -e /run/ibboot/requested ]; then
    # ibboot.service cannot remove its own directory.
    rm -rf /run/ibboot
    return 0
fi

if [ -n "$DRACUT_SYSTEMD" ]; then
    systemctl stop ibboot.service
    # Of a unit that failed, systemd would carry the state into the real root.
    systemctl reset-failed ibboot.service 2> /dev/null
    # The loader ends with it. One that the kernel holds is not waited for.
    systemctl --no-block stop 'ibboot-loader@*.service'
    # At its end NetworkManager replaces its states of all interfaces, also those of --hand-over. The
    # interfaces stay as they are.
    {
        read -r _
        read -r _
        read -r ibboot_handover
    } < /run/ibboot/requested
    [ "$ibboot_handover" != nm ] \
        || systemctl stop nm-initrd.service NetworkManager-initrd.service 2> /dev/null
    unset ibboot_handover
elif [ -e /run/ibboot/up.pid ]; then
    read -r ibboot_pid < /run/ibboot/up.pid
    kill -TERM "$ibboot_pid" 2> /dev/null
    ibboot_tries=50
    while [ -e /run/ibboot/up.pid ] && [ "$ibboot_tries" -gt 0 ]; do
        sleep 0.1
        ibboot_tries=$((ibboot_tries - 1))
    done
    [ ! -e /run/ibboot/up.pid ] || kill -KILL "$ibboot_pid" 2> /dev/null
    unset ibboot_pid ibboot_tries
fi

# Without the limit a lock that a dead card holds in the kernel would hold the boot too.
/usr/sbin/ibboot --limit 10 up --hand-over
