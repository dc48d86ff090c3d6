#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# initramfs.sh WORK KERNEL [BUILDER]: build WORK/initramfs.img for the unpacked KERNEL with the dracut of the
# tree BUILDER, else with the host's. WORK holds conf, arguments (one per line), modprobe.d/, modules/, bin/.
# Run under `unshare --mount`: the mounts made here are seen by nobody else, and the host stays as it is.
set -euo pipefail
work=$1 kernel=$2 builder=${3:-}

if [ -n "$builder" ]; then
    mkdir -p "$work/kernel"
    mount --bind "$work" "$builder/mnt"
    mount --bind "$kernel" "$builder/mnt/kernel"
    # Where dracut's modules ask whether the kernel has what they are about.
    mkdir -p "$builder/lib/modules"
    mount --bind "$kernel/lib/modules" "$builder/lib/modules"
    mount -t proc proc "$builder/proc"
    mount -t sysfs sysfs "$builder/sys"
    mount --rbind /dev "$builder/dev"
    exec chroot "$builder" bash /mnt/initramfs.sh /mnt /mnt/kernel
fi

# The site's files, as the case wants them, instead of the host's.
mkdir -p /etc/modprobe.d
mount --bind "$work/modprobe.d" /etc/modprobe.d

# dracut looks for its modules in one folder only: a copy of it with ours added.
mkdir -p "$work/tmp" "$work/confdir"
cp -a /usr/lib/dracut "$work/dracut"
cp -a "$work/modules/." "$work/dracut/modules.d/"

version=$(ls "$kernel/lib/modules")
mapfile -t arguments < "$work/arguments"
export dracutbasedir=$work/dracut
# The kernel's modules are not where this host keeps its own, which dracut would complain about.
export DRACUT_KMODDIR_OVERRIDE=1
dracut --force --no-hostonly --no-early-microcode --no-compress --reproducible \
    --conf "$work/conf" --confdir "$work/confdir" --tmpdir "$work/tmp" \
    --kmoddir "$kernel/lib/modules/$version" "${arguments[@]}" "$work/initramfs.img" "$version"
