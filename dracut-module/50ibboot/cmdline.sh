#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cmdline 93: is anything on the command line for ibboot? When not, nothing of it happens. Else `plan --asked` writes
# /run/ibboot/asked: what the hooks do, and after how many seconds, should `ibboot up` die or hang. With systemd, this
# file makes dracut's event queue run (initqueue.conf).

/usr/sbin/ibboot plan --asked || return 0

# NetworkManager, systemd-networkd and network-legacy start later, and leave the interfaces alone.
/usr/sbin/ibboot up --claim

# dracut hands this one to cards that speak iSCSI themselves; open-iscsi has a word of its own for it.
if [ "$(getarg rd.iscsi.transport=)" = iser ]; then
    mkdir -p /etc/cmdline.d
    echo rd.iscsi.param=iface.transport_name=iser > /etc/cmdline.d/93-ibboot.conf
fi

# shellcheck disable=SC2154
echo "$hookdir" > /run/ibboot/hookdir
ln -sf /usr/lib/ibboot/job.sh "$hookdir/initqueue/50-ibboot.sh"
ln -sf /usr/lib/ibboot/finished.sh "$hookdir/initqueue/finished/50-ibboot.sh"
