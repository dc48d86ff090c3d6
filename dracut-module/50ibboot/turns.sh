#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by netroot.sh: which interfaces have not had their turn yet (ibboot_todo), which have (ibboot_again), and
# which are ours and up (ibboot_ours).

ibboot_todo='' ibboot_again='' ibboot_ours=''
[ ! -r /run/ibboot/interfaces ] || while read -r ibboot_word ibboot_name; do
    case $ibboot_word in
        # network-legacy would let the boot wait for this one.
        # shellcheck disable=SC2154
        offline) rm -f "$hookdir/initqueue/finished/wait-$ibboot_name.sh" ;;
        online)
            ibboot_ours="$ibboot_ours $ibboot_name "
            if [ -e "/run/ibboot/online-$ibboot_name" ]; then
                ibboot_again="$ibboot_again $ibboot_name"
            else
                ibboot_todo="$ibboot_todo $ibboot_name"
            fi
            ;;
    esac
done < /run/ibboot/interfaces
# Turns of other network modules that were held (hold.sh): their `online` hooks have run. A name may be that of ours
# which did not come: of the boot device, by which netroot goes on whatever interface is up.
for ibboot_name in /run/ibboot/held-*; do
    ibboot_name=${ibboot_name#/run/ibboot/held-}
    case $ibboot_ours in
        *" $ibboot_name "*) continue ;;
    esac
    if [ "$ibboot_name" = '*' ]; then
        continue
    elif [ -e "/run/ibboot/turn-$ibboot_name" ]; then
        ibboot_again="$ibboot_again $ibboot_name"
    else
        : > "/run/ibboot/turn-$ibboot_name"
        ibboot_todo="$ibboot_todo $ibboot_name"
    fi
done
