#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# iscsi.sh [iser | chap USER PASSWORD | two | raid]: in the far end's namespace, the disk that other cases boot from as
# an iSCSI target, with `two` beside a target with a small disk in memory; with `raid` each of the two files on the disk
# is the disk of a target. All of it is the kernel's, so it outlives the initramfs. The portal belongs to the namespace of who makes it; one of RDMA, which iser adds to it, to the initial one.

. /run/ibboot-fabric/lib.sh
mkdir -p "$place/config"
mount -t configfs configfs "$place/config" || failed "no configfs"
target=$place/config/target

# backstore FOLDER CONTROL: a disk, in $disk
backstore() {
    disk=$target/core/$1
    mkdir -p "$disk" || failed "no backstore $1"
    echo "$2" > "$disk/control"
    echo 1 > "$disk/enable" || failed "the disk of $1 cannot be taken"
}

# share NAME: $disk as a target, whose group is in $group; whoever comes may read and write
share() {
    group=$target/iscsi/iqn.2026-01.test:$1/tpgt_1
    mkdir -p "$group/lun/lun_0" "$group/np/10.0.0.2:3260" || failed "no portal"
    ln -s "$disk" "$group/lun/lun_0/disk"
    echo 0 > "$group/attrib/authentication"
    echo 1 > "$group/attrib/generate_node_acls"
    echo 0 > "$group/attrib/demo_mode_write_protect"
}

# enable: the target of $group answers from now on
enable() {
    echo 1 > "$group/enable" || failed "the target is not enabled"
}

if [ "${1:-}" = raid ]; then
    mkdir -p "$place/halves"
    mount -t ext4 /dev/vda "$place/halves" || failed "the disk cannot be mounted"
    for half in half0 half1; do
        file=$place/halves/$half
        backstore "fileio_0/$half" "fd_dev_name=$file,fd_dev_size=$(stat -c %s "$file")"
        share "$half"
        enable
    done
    exit
fi
if [ "${1:-}" = two ]; then
    backstore rd_mcp_0/data rd_pages=256
    share data
    enable
fi
backstore iblock_0/disk udev_path=/dev/vda
share disk
if [ "${1:-}" = chap ]; then
    # A newline would be part of them.
    printf %s "$2" > "$group/auth/userid" && printf %s "$3" > "$group/auth/password" || failed "no CHAP"
    echo 1 > "$group/attrib/authentication"
fi
[ "${1:-}" != iser ] || echo 1 > "$group/np/10.0.0.2:3260/iser" || failed "no RDMA portal"
enable
