#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# systemd.generator(7) of the initramfs: if the kernel command line may request ibboot, ibboot.service
# starts before dracut's hooks, and dracut's cmdline stage needs no other reason to run.

# shellcheck source=/dev/null
. /usr/lib/ibboot/may-request.sh || exit 0
mkdir -p "$1/sysinit.target.d" "$1/dracut-cmdline.service.d"
printf '[Unit]\nWants=ibboot.service\n' > "$1/sysinit.target.d/50-ibboot.conf"
printf '[Unit]\nConditionPathExists=|/etc/initrd-release\n' > "$1/dracut-cmdline.service.d/60-ibboot.conf"
