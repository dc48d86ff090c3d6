#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-pivot, before write-ifcfg.sh of dracut's module ifcfg (RHEL 8 and 9), which makes a profile for the real root
# of each file net.NAME.did-setup. Of a hardware address with dashes it makes one that fits every Ethernet interface,
# and it replaces the site's own ifcfg-ib0. ibboot itself hands its interfaces over.

for ibboot_file in /tmp/net.*.did-setup; do
    ibboot_owner=''
    [ ! -f "$ibboot_file" ] || read -r ibboot_owner < "$ibboot_file"
    [ "$ibboot_owner" != '# ibboot' ] || rm -f "$ibboot_file"
done
unset ibboot_file ibboot_owner
