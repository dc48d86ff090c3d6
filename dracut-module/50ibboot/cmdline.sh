#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cmdline 93, and again from zz-ibboot-complete.sh if a later hook changed the command line: if the
# command line requests nothing of ibboot (exit 2), this hook ends. Otherwise `plan --requested` writes
# /run/ibboot/requested: the action of the hooks if `ibboot up` dies or hangs, the deadline in seconds, and
# rd.ib.handover=. With systemd, this file makes dracut's event queue run (initqueue.conf).

# `ibboot up` is not running yet: zz-ibboot-complete.sh starts it.
[ -d /run/ibboot ] || ibboot_late=1

ibboot_line=$(getcmdline)

/usr/sbin/ibboot --limit 10 plan --requested
case $? in
    0) ;;
    2)
        # A later hook took the request back.
        if [ -e /run/ibboot/requested ]; then
            rm -f "$hookdir/initqueue/50-ibboot.sh" "$hookdir/initqueue/settled/zz-ibboot.sh" \
                "$hookdir/initqueue/finished/50-ibboot.sh"
            rm -f /etc/cmdline.d/93-ibboot.conf
            /usr/sbin/ibboot --limit 10 up --reserve
            rm -f /run/ibboot/requested /run/ibboot/result /run/ibboot/hold /run/ibboot/alone /run/ibboot/alone-nm
        fi
        return 0
        ;;
    *)
        # Whether anything is requested is not known. The links are set up with the deadline and the
        # reaction of the first run, or the default ones, so that a fault of this step is never a silent
        # boot without links.
        if [ ! -e /run/ibboot/requested ]; then
            warn "ibboot plan --requested failed: the defaults of rd.ib.timeout and rd.ib.onfail apply"
            mkdir -p /run/ibboot
            printf 'continue\n180\nauto\n' > /run/ibboot/requested
        fi
        ;;
esac

# Before NetworkManager, systemd-networkd and network-legacy start: tell them to leave the
# interfaces alone.
/usr/sbin/ibboot --limit 10 up --reserve

# dracut passes this argument only to cards with their own iSCSI initiator; open-iscsi needs a
# different argument.
if [ "$(getarg rd.iscsi.transport=)" = iser ]; then
    mkdir -p /etc/cmdline.d
    echo rd.iscsi.param=iface.transport_name=iser > /etc/cmdline.d/93-ibboot.conf
    ibboot_line=$(getcmdline)
fi

# shellcheck disable=SC2154
echo "$hookdir" > /run/ibboot/hookdir
# With rd.hostonly=0 dracut 059 has removed the folder.
mkdir -p "$hookdir/initqueue/finished" "$hookdir/initqueue/settled"
ln -sf /usr/lib/ibboot/job.sh "$hookdir/initqueue/50-ibboot.sh"
ln -sf /usr/lib/ibboot/settled.sh "$hookdir/initqueue/settled/zz-ibboot.sh"
ln -sf /usr/lib/ibboot/finished.sh "$hookdir/initqueue/finished/50-ibboot.sh"
