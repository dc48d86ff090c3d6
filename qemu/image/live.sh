#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# live.sh WORK ROOT TREE: make WORK/live.ext4, which holds the files of the ext4 image ROOT as root.squashfs, with the
# programs of TREE. Run under `unshare --mount`.
set -euo pipefail
work=$1 root=$2 tree=$3

mkdir "$work/root" "$work/disk"
debugfs -R "rdump / $work/root" "$root" > /dev/null 2>&1
rmdir "$work/root/lost+found"
mount --bind "$work" "$tree/mnt"
# Quick to unpack: it is done under emulation.
chroot "$tree" mksquashfs /mnt/root /mnt/disk/root.squashfs -comp lz4 -quiet -no-progress
rm -rf "$work/root"
mke2fs -q -t ext4 -O ^has_journal -d "$work/disk" "$work/live.ext4" "$(($(stat -c %s "$work/disk/root.squashfs") / 1024 / 1024 + 32))M"
rm -rf "$work/disk"
