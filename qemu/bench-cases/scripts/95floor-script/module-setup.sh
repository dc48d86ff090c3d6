#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# address.sh in the last hook before udev's coldplug, which waits for it.

# shellcheck disable=SC2154 # dracut sets the variables
install() {
    inst_multiple modprobe ip cat sleep
    inst_hook pre-trigger 50 "$moddir/../address.sh"
}
