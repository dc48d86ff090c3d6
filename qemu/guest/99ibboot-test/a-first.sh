#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Before dracut's hooks and before ibboot: the fabric and the case's own script, if the case has them.
# ibboot-test-first.service or, without systemd, the first cmdline hook.

mkdir -p /run/ibboot-test/out
[ ! -e /ibboot-fabric/start.sh ] || sh /ibboot-fabric/start.sh
# The second folder is that of dracut 110 and later.
for folder in /lib/dracut/hooks /var/lib/dracut/hooks; do
    [ ! -d "$folder" ] || hookdir=$folder
done
[ ! -e /ibboot-test/initramfs.sh ] || hookdir=$hookdir sh /ibboot-test/initramfs.sh
