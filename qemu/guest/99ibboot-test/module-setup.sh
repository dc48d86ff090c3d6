#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What a boot case needs inside the initramfs: it starts the case's own script, and carries files out.

# shellcheck disable=SC2154 # dracut sets moddir
check() {
    return 255
}

install() {
    # Without it rd.driver.post= does nothing beside systemd-networkd.
    if dracut_module_included network; then
        dracut_need_initqueue
    fi
    # Debian's iscsid.service needs it, and not every dracut takes it along.
    if dracut_module_included iscsi; then
        inst_simple /usr/lib/open-iscsi/startup-checks.sh
    fi
    # dracut looks for these in other folders than Debian has them in; multipathd ends without them.
    if dracut_module_included multipath; then
        inst_multiple /lib/multipath/*.so
    fi
    inst_multiple tar stty cat cp dmesg ls sleep date touch grep sed tail ip rdma poweroff
    inst_multiple cmp dd find head mkdir tr
    inst_simple "$moddir/export.sh" /usr/lib/ibboot-test/export.sh
    inst_simple "$moddir/show.sh" /usr/lib/ibboot-test/show.sh
    inst_simple "$moddir/when-up-runs.sh" /usr/lib/ibboot-test/when-up-runs.sh
    if dracut_module_included systemd; then
        inst_simple "$moddir/a-first.sh" /usr/lib/ibboot-test/first.sh
        inst_simple "$moddir/ibboot-test-first.service" "$systemdsystemunitdir/ibboot-test-first.service"
        mkdir -p "$initdir$systemdsystemunitdir/sysinit.target.wants"
        ln -sf ../ibboot-test-first.service "$initdir$systemdsystemunitdir/sysinit.target.wants/"
    else
        # Sorted before ibboot's first hook.
        inst_hook cmdline 00 "$moddir/a-first.sh"
    fi
    inst_hook initqueue 10 "$moddir/verdict.sh"
    inst_hook pre-pivot 99 "$moddir/dump.sh"
    inst_hook emergency 99 "$moddir/emergency.sh"
    inst_hook cleanup 99 "$moddir/handover.sh"
}
