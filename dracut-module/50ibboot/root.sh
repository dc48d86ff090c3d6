#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by netroot.sh: what the root file system is (ibboot_root), and whether NVMe servers are named (ibboot_nvme).

# What the command line names, or the DHCP server of the boot device: `netroot` takes it from there.
# shellcheck disable=SC2154
ibboot_root=$netroot
if [ "$ibboot_root" = dhcp ] && [ -r /tmp/net.bootdev ]; then
    read -r ibboot_name < /tmp/net.bootdev
    # shellcheck source=/dev/null
    ibboot_root=$(
        new_root_path=''
        [ ! -r "/tmp/dhclient.$ibboot_name.dhcpopts" ] || . "/tmp/dhclient.$ibboot_name.dhcpopts"
        case $new_root_path in
            /* | [0-9]*:/*) new_root_path=nfs:$new_root_path ;;
        esac
        printf %s "${new_root_path:-dhcp}"
    )
fi
# Debian's nvme-cli comes with a file that has nothing but comments.
ibboot_nvme=''
if [ -r /etc/nvme/discovery.conf ]; then
    while read -r ibboot_word _ || [ -n "$ibboot_word" ]; do
        case $ibboot_word in
            '' | '#'*) ;;
            *) ibboot_nvme=nvme ;;
        esac
    done < /etc/nvme/discovery.conf
fi
