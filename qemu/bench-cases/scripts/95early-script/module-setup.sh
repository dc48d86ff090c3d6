#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# address.sh as a unit that starts before dracut's cmdline hooks.

# shellcheck disable=SC2154 # dracut sets the variables
install() {
    inst_multiple modprobe ip cat sleep
    inst_simple "$moddir/../address.sh" /usr/lib/bench/address.sh
    inst_simple "$moddir/early-script.service" "$systemdsystemunitdir/early-script.service"
    mkdir -p "$initdir$systemdsystemunitdir/sysinit.target.wants"
    ln -sf ../early-script.service "$initdir$systemdsystemunitdir/sysinit.target.wants/early-script.service"
}
