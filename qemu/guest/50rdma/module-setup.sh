#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In place of rdma-core's dracut module, which Debian's package omits: the same rules, units and lists of drivers, and
# the modules of those lists. The drivers of cards are not included: a virtual machine has no such card.

# dracut sets the variables that this script does not set.
# shellcheck disable=SC2154
check() {
    return 255
}

depends() {
    echo systemd
}

installkernel() {
    hostonly='' instmods ib_ipoib ib_umad ib_iser ib_uverbs rdma_ucm xprtrdma svcrdma
}

install() {
    local list
    for list in infiniband iwarp opa rdma roce; do
        inst_simple "/etc/rdma/modules/$list.conf"
    done
    inst_rules 60-rdma-persistent-naming.rules 75-rdma-description.rules 90-rdma-hw-modules.rules \
        90-rdma-ulp-modules.rules 90-rdma-umad.rules
    inst_simple "$systemdsystemunitdir/rdma-hw.target"
    inst_simple "$systemdsystemunitdir/rdma-load-modules@.service"
    # The list of modules that every boot loads.
    for list in infiniband rdma roce; do
        $SYSTEMCTL -q --root "$initdir" add-wants initrd.target "rdma-load-modules@$list.service"
    done
    # Only the near end of a test's cable: the scripts of the far end know its HCAs by the kernel's names.
    sed -i 's/^ACTION=="add", /&KERNEL=="softib[02468]", /' "$initdir$udevdir/rules.d/60-rdma-persistent-naming.rules"
}
