#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# encrypted.sh WORK ROOT TREE: make WORK/encrypted.img, a LUKS disk with the ext4 image ROOT, with the programs of TREE.
# Its key is the text `ibboot`, its identifier the one below. Run under `unshare --mount`.
set -euo pipefail
work=$1 root=$2 tree=$3
uuid=1bb00700-0000-4000-8000-000000000001

cp --sparse=always "$root" "$work/small.ext4"
# A LUKS disk has no holes.
e2fsck -fp "$work/small.ext4" > /dev/null || [ $? -le 1 ]
resize2fs -M "$work/small.ext4" > /dev/null 2>&1
mount --bind "$work" "$tree/mnt"
# The key is derived quickly: it is done under emulation.
encrypt() {
    chroot "$tree" qemu-img convert --object secret,id=key,data=ibboot -f raw -O luks \
        -o key-secret=key,hash-alg=sha512,iter-time=10 /mnt/small.ext4 /mnt/encrypted.img
}
# qemu-img measures the processor, and gives up if the kernel has counted no time.
encrypt || encrypt || encrypt
rm "$work/small.ext4"
# uuid of struct luks_phdr (LUKS On-Disk Format Specification 1.2.3, figure 1): text of 40 bytes at 168, no checksum.
printf '%s\0' "$uuid" | dd of="$work/encrypted.img" bs=1 seek=168 conv=notrunc status=none
