#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced: true if the kernel command line may request ibboot; ibboot itself decides. rd.ib in capital
# letters, or with another separator behind it, counts too: ibboot reports such a typing error.

while read -r ibboot_line || [ -n "$ibboot_line" ]; do
    for ibboot_name in '[Rr][Dd].[Ii][Bb]' ib.pkey ip= ifname= bond= bridge= team= vlan= bootdev= \
        '[Bb][Oo][Oo][Tt][Ii][Ff]=' rd.driver.p; do
        # Any other character, such as a quote, may be before the name.
        case " $ibboot_line" in
            *[!A-Za-z0-9._-]$ibboot_name*)
                unset ibboot_line ibboot_name
                return 0
                ;;
        esac
    done
done < /proc/cmdline
unset ibboot_line ibboot_name
return 1
