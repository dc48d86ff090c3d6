#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-udev: the case's own script, if the case has one.

mkdir -p /run/ibboot-test/out
[ ! -e /ibboot-test/initramfs.sh ] || sh /ibboot-test/initramfs.sh
