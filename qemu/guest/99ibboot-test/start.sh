#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-udev: the fabric and the case's own script, if it brought them.

mkdir -p /run/ibboot-test/out
[ ! -e /ibboot-fabric/start.sh ] || sh /ibboot-fabric/start.sh
[ ! -e /ibboot-test/initramfs.sh ] || sh /ibboot-test/initramfs.sh
