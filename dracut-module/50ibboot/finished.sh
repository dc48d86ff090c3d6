#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initqueue/finished: may the boot go on? Sourced by dracut in a subshell of its own.

[ -e /run/ibboot/result ] || return 1
read -r ibboot_verdict < /run/ibboot/result
case $ibboot_verdict in
    verified | "failed continue") ;;
    "failed shell") [ -e /run/ibboot/shell-left ] || return 1 ;;
    *) return 1 ;;
esac

# What goes on over an interface must have had its turn (netroot.sh).
[ -r /run/ibboot/interfaces ] && [ ! -d "$NEWROOT/proc" ] || return 0
ibboot_state=''
[ ! -e /run/ibboot/netroot ] || read -r ibboot_state _ < /run/ibboot/netroot
while read -r ibboot_word ibboot_name; do
    [ "$ibboot_word" != online ] || [ "$ibboot_state" = ended ] || return 1
    [ "$ibboot_word" != online ] || [ -e "/run/ibboot/online-$ibboot_name" ] || return 1
done < /run/ibboot/interfaces
