#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Before dracut's hooks and before ibboot: the fabric, if the case has one. ibboot-test-fabric.service or, without
# systemd, the first cmdline hook.

mkdir -p /run/ibboot-test/out
[ ! -e /ibboot-fabric/start.sh ] || sh /ibboot-fabric/start.sh
