#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# First hook of cmdline, without systemd: if the kernel command line may request ibboot, start it.
# The names are those of ibboot.service. zz-ibboot-complete.sh starts ibboot for all other requests.

read -r ibboot_cmdline < /proc/cmdline
case " $ibboot_cmdline" in
    *" rd.ib"* | *" ib.pkey="* | *" ip="* | *" bond="* | *" bridge="* | *" team="* | *" vlan="* | \
        *" bootdev="* | *" BOOTIF="* | *" rd.driver.p"*)
        # shellcheck source=/dev/null
        . /usr/lib/ibboot/start.sh
        ;;
esac
unset ibboot_cmdline
