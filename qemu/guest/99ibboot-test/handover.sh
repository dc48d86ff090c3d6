#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# cleanup: what the initramfs saw goes with /run into the real root, with the case's script for it.

for ibboot_test_file in /run/ibboot/*.json /run/ibboot/result; do
    [ ! -e "$ibboot_test_file" ] || cp "$ibboot_test_file" "/run/ibboot-test/out/initramfs-${ibboot_test_file##*/}"
done
# A query of a dead HCA would not return, and the time of the hook is measured there. Without a device it would load
# ib_core.
[ -e /run/ibboot-test/dead-hca ] || [ ! -d /sys/class/infiniband ] || rdma link > /run/ibboot-test/out/initramfs-rdma-link 2>&1
[ ! -e /run/ibboot/result ] || [ -e /run/ibboot-test/dead-hca ] || sh /usr/lib/ibboot-test/show.sh "In the initramfs: ibboot check" ibboot check --all
[ ! -d /ibboot-test ] || cp -a /ibboot-test/. /run/ibboot-test/
unset ibboot_test_file
