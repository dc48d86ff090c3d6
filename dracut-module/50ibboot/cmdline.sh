#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cmdline 93: is anything on the command line for ibboot? When not, nothing of it happens.

/usr/sbin/ibboot plan --asked || return 0

# NetworkManager, systemd-networkd and network-legacy start later, and leave the interfaces alone.
/usr/sbin/ibboot up --claim

# dracut hands this one to cards that speak iSCSI themselves; open-iscsi has a word of its own for it.
if [ "$(getarg rd.iscsi.transport=)" = iser ]; then
    mkdir -p /etc/cmdline.d
    echo rd.iscsi.param=iface.transport_name=iser > /etc/cmdline.d/93-ibboot.conf
fi

# Should `ibboot up` die or hang, the hooks decide in its place: what to do, and after how many seconds.
ibboot_onfail=$(getarg rd.ib.onfail=)
case $ibboot_onfail in
    shell | reboot) ;;
    *) ibboot_onfail="continue" ;;
esac
# A dump that is to be written (rd.ib.kdump=1) is worth more than what waits for the fabric.
[ ! -e /proc/vmcore ] || ibboot_onfail="continue"
ibboot_timeout=180
for ibboot_seconds in "$(getarg rd.retry=)" "$(getarg rd.ib.timeout=)"; do
    case $ibboot_seconds in
        '' | 0* | *[!0-9]* | ???????????*) ;;
        *) ibboot_timeout=$ibboot_seconds ;;
    esac
done

# With systemd, this file makes dracut's event queue run (initqueue.conf).
mkdir -p /run/ibboot
printf '%s\n%s\n' "$ibboot_onfail" "$ibboot_timeout" > /run/ibboot/asked
# shellcheck disable=SC2154
echo "$hookdir" > /run/ibboot/hookdir
ln -sf /usr/lib/ibboot/job.sh "$hookdir/initqueue/50-ibboot.sh"
ln -sf /usr/lib/ibboot/finished.sh "$hookdir/initqueue/finished/50-ibboot.sh"
unset ibboot_onfail ibboot_timeout ibboot_seconds
