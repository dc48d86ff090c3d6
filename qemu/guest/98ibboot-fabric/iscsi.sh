#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# iscsi.sh [iser | chap USER PASSWORD]: in the far end's namespace, the disk that other cases boot from as an iSCSI target. All of it is the
# kernel's, so it outlives the initramfs. The portal belongs to the namespace of who makes it; one of RDMA, which iser
# adds to it, to the initial one.

. /run/ibboot-fabric/lib.sh
name=iqn.2026-01.test:disk
mkdir -p "$place/config"
mount -t configfs configfs "$place/config" || failed "no configfs"
target=$place/config/target

disk=$target/core/iblock_0/disk
mkdir -p "$disk" || failed "no target_core_iblock"
echo udev_path=/dev/vda > "$disk/control"
echo 1 > "$disk/enable" || failed "the disk cannot be taken"

group=$target/iscsi/$name/tpgt_1
mkdir -p "$group/lun/lun_0" "$group/np/10.0.0.2:3260" || failed "no portal"
ln -s "$disk" "$group/lun/lun_0/disk"
# Whoever comes may read and write, with CHAP who knows the password.
echo 0 > "$group/attrib/authentication"
if [ "${1:-}" = chap ]; then
    # A newline would be part of them.
    printf %s "$2" > "$group/auth/userid" && printf %s "$3" > "$group/auth/password" || failed "no CHAP"
    echo 1 > "$group/attrib/authentication"
fi
echo 1 > "$group/attrib/generate_node_acls"
echo 0 > "$group/attrib/demo_mode_write_protect"
[ "${1:-}" != iser ] || echo 1 > "$group/np/10.0.0.2:3260/iser" || failed "no RDMA portal"
echo 1 > "$group/enable" || failed "the target is not enabled"
