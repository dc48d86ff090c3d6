#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# After `ibboot up` has ended in whatever way: it leaves a verdict, and where it could not, this does,
# so that a crash is told to the console and never waited for.

if [ -e /run/ibboot/asked ] && [ ! -e /run/ibboot/result ]; then
    read -r ibboot_onfail < /run/ibboot/asked
    ibboot_reason="ibboot up: no verdict: ${IBBOOT_ENDED:-$EXIT_CODE $EXIT_STATUS}; see dmesg"
    printf 'failed %s\n%s\n' "$ibboot_onfail" "$ibboot_reason" > /run/ibboot/result.ended
    mv /run/ibboot/result.ended /run/ibboot/result
    echo "<3>ibboot: $ibboot_reason" > /dev/kmsg
    unset ibboot_onfail ibboot_reason
fi
rm -f /run/ibboot/up.pid
