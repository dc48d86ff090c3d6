#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue/finished: may the boot go on? Sourced by dracut in a subshell of its own.

[ -e /run/ibboot/result ] || return 1
read -r ibboot_verdict < /run/ibboot/result
case $ibboot_verdict in
    verified | "failed continue") return 0 ;;
    "failed shell") [ -e /run/ibboot/shell-left ] ;;
    *) return 1 ;;
esac
