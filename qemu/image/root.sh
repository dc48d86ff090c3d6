#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# root.sh WORK TREE KERNEL [SERVICE]: make WORK/root.ext4 out of the Debian tree TREE, the files under WORK/add and
# the modules of KERNEL that WORK/modules lists. Nothing that a boot does not need is started in it, and of those that
# manage networks only SERVICE.
set -euo pipefail
work=$1 tree=$2 kernel=$3 service=${4:-}

root=$work/root
cp -a --reflink=auto "$tree" "$root"
# Whatever the modes of the source and of the program are.
chmod -R u=rwX,go=rX "$work/add"
cp -a "$work/add/." "$root/"
version=$(ls "$kernel/lib/modules")
mkdir -p "$root/lib/modules/$version"
cp "$kernel/lib/modules/$version"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
while read -r module; do
    install -D -m 644 "$kernel/$module" "$root/$module"
done < "$work/modules"
depmod -b "$root" "$version"

mkdir -p "$root/etc/systemd/system"
echo ibboot-test > "$root/etc/hostname"
: > "$root/etc/fstab"
printf '0123456789abcdef0123456789abcdef\n' > "$root/etc/machine-id"
rm -rf "$root"/var/lib/apt/lists "$root"/var/cache/apt "$root"/usr/share/locale
units=$root/etc/systemd/system
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
    systemd-tmpfiles-clean.timer systemd-ask-password-console.path systemd-ask-password-wall.path systemd-initctl.socket \
    dbus.service dbus.socket systemd-logind.service systemd-user-sessions.service getty@tty1.service getty-static.service \
    modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service modprobe@fuse.service modprobe@loop.service \
    dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount \
    sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount systemd-binfmt.service systemd-firstboot.service \
    systemd-hwdb-update.service systemd-journal-catalog-update.service systemd-journal-flush.service systemd-ldconfig.service \
    systemd-machine-id-commit.service systemd-pstore.service systemd-random-seed.service systemd-remount-fs.service \
    systemd-repart.service systemd-sysusers.service systemd-update-done.service systemd-update-utmp.service \
    systemd-update-utmp-runlevel.service; do
    ln -sf /dev/null "$units/$unit"
done
ln -sf /lib/systemd/system/ibboot-test.target "$units/default.target"
mkdir -p "$units/multi-user.target.wants"
for other in NetworkManager.service NetworkManager-wait-online.service systemd-networkd.service systemd-networkd.socket \
    systemd-networkd-wait-online.service systemd-network-generator.service; do
    [ "$other" = "$service" ] || ln -sf /dev/null "$units/$other"
done
if [ -n "$service" ]; then
    rm "$units/dbus.service" "$units/dbus.socket"
    ln -sf "/lib/systemd/system/$service" "$units/multi-user.target.wants/$service"
fi
for unit in ibboot-check.service ibboot-lease.service; do
    [ ! -e "$root/lib/systemd/system/$unit" ] || ln -sf "/lib/systemd/system/$unit" "$units/multi-user.target.wants/$unit"
done
# As a package does it when it is installed.
[ ! -e "$root/usr/lib/sysusers.d/ibboot.conf" ] || systemd-sysusers --root="$root" ibboot.conf
# The harness has a limit of its own, and those of units are not what a case is about.
mkdir "$units/ibboot-check.service.d"
printf '[Service]\nTimeoutStartSec=10min\n' > "$units/ibboot-check.service.d/patience.conf"
mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/root.ext4" 1G
rm -rf "$root"
