#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Adds ibboot to an initramfs. Options in dracut.conf(5) or dracut.conf.d:
#   ibboot_drivers="..."  kernel modules that replace the list below (add_drivers+= extends it)
#   ibboot_binary=/path   path of the program, if not /usr/sbin/ibboot

# dracut sets the variables that this script does not set.
# shellcheck disable=SC2154,SC2034
ibboot_default_drivers="mlx4_ib mlx5_ib hfi1 hfi2 ib_mthca ib_qib ib_ipoib ib_umad ib_uverbs rdma_ucm rdma_rxe siw crc32_generic bonding"
# The drivers of links that can carry a dump.
ibboot_dump_drivers="mlx4_ib mlx5_ib hfi1 hfi2 ib_ipoib bonding"

# Whether this is a kdump image. Fedora's mkdumprd exports IN_KDUMP, SUSE's requests a module by
# name. A requested module that dracut handles after this one is not yet in dracut's list of
# modules.
is_for_kdump() {
    local requested=" $dracutmodules $add_dracutmodules $force_add_dracutmodules "
    [[ $IN_KDUMP || $requested == *" kdumpbase "* || $requested == *" kdump "* ]]
}

# 255: not in a kdump image, unless requested (--add ibboot).
check() {
    require_binaries "${ibboot_binary:-/usr/sbin/ibboot}" modprobe || return 1
    is_for_kdump && return 255
    return 0
}

# The event queue is a separate module in later releases.
depends() {
    local queue
    for queue in "$dracutbasedir"/modules.d/[0-9][0-9]initqueue; do
        [[ -d $queue ]] && echo initqueue
    done
    return 0
}

# Never host-only: the next boot may need a driver that this host does not use. But a kdump image is
# for this host, and has little memory. rdma_rxe requests its checksum by name at run time, so no
# dependency includes crc32_generic. Without a name instmods reads names from standard input:
# ibboot_drivers may be empty.
installkernel() {
    if is_for_kdump; then
        # shellcheck disable=SC2086
        instmods ${ibboot_drivers-$ibboot_dump_drivers} < /dev/null
        return
    fi
    local storage=''
    # Files for protocols over RDMA that these modules of dracut omit, or include only on a host
    # that uses them.
    dracut_module_included nfs && storage+=" rpcrdma"
    dracut_module_included iscsi && storage+=" ib_iser"
    dracut_module_included nvmf && storage+=" nvme_rdma"
    # shellcheck disable=SC2086
    hostonly='' instmods ${ibboot_drivers-$ibboot_default_drivers} $storage < /dev/null
}

# The site's options, install lines and soft dependencies of RDMA modules apply in the image too, and on
# SLES whether modprobe loads modules without support; dracut itself copies /etc/modprobe.d only into
# host-only images. "-" and "_" are the same in module names. Of files with one name modprobe reads the
# one of the first folder, which may be empty: each of them is copied.
install_site_settings() {
    local file folder name names="(mlx[45]|ib|iw|rdma|hns_roce|ionic|mana)_[a-z0-9_]+|nvme_rdma|rpcrdma|hfi[12]|irdma|i40iw|bnxt_re|efa|erdma|ocrdma|qedr|vmw_pvrdma|siw"
    for name in ${ibboot_drivers-$ibboot_default_drivers} $add_drivers; do
        name=${name//-/_}
        [[ $name =~ ^[a-z0-9_]+$ ]] && names+="|$name"
    done
    for file in "$dracutsysrootdir"/{etc,usr/local/lib,usr/lib,lib}/modprobe.d/*.conf; do
        [[ -f $file ]] || continue
        # -c, not -q: dracut sets pipefail, and with -q grep ends before tr has written a long file.
        (($(tr '-' '_' < "$file" | grep -Ec "^[[:space:]]*([a-z]+[[:space:]]+($names)|allow_unsupported_modules)([[:space:]]|\$)"))) || continue
        for folder in /etc /usr/local/lib /usr/lib /lib; do
            name=$folder/modprobe.d/${file##*/}
            if [[ $(readlink "$dracutsysrootdir$name") == /dev/null ]]; then
                inst_dir "$folder/modprobe.d"
                ln -sf /dev/null "$initdir$name"
            elif [[ -f $dracutsysrootdir$name ]]; then
                # inst_simple passes over a file that only the tree of --sysroot has.
                inst_multiple "$name"
            fi
        done
    done
    [[ -e $dracutsysrootdir/etc/rdma/mlx4.conf ]] || return 0
    # The script of rdma-core, in SLES below /usr/lib, and what the script calls.
    inst_multiple -o /etc/rdma/mlx4.conf /usr/libexec/mlx4-setup.sh /usr/lib/mlx4-setup.sh bash cat
}

# dracut 110 and later run the hooks below /etc and /usr/lib after those of modules: only the last
# hooks of the last folder are the last ones.
runs_hooks_of_folders() {
    # shellcheck disable=SC2154
    grep -qs /usr/lib/dracut/hooks "$dracutbasedir"/modules.d/[0-9][0-9]base/dracut-lib.sh
}

# dracut 060 and later have a cmdline hook for systemd themselves: the stage always runs.
has_cmdline_hook() {
    grep -qs 'inst_hook cmdline' "$dracutbasedir"/modules.d/[0-9][0-9]dracut-systemd/module-setup.sh
}

# With systemd. A dracut before 060 skips the stages cmdline and cleanup if they have no hook and no other
# reason to run. There ibboot's hooks are no reason: dracut-cmdline.service adds them when it starts, and
# ibboot-generator starts it if the command line requests ibboot.
install_hooks() {
    if ! has_cmdline_hook; then
        inst_simple "$moddir/zz-ibboot-complete.sh" /usr/lib/ibboot/zz-ibboot-complete.sh
        inst_simple "$moddir/cleanup.sh" /usr/lib/ibboot/cleanup.sh
        inst_simple "$moddir/link.sh" /usr/lib/ibboot/link.sh
        inst_simple "$moddir/cmdline.conf" "$systemdsystemunitdir/dracut-cmdline.service.d/50-ibboot.conf"
        return
    fi
    inst_hook cmdline 93 "$moddir/cmdline.sh"
    inst_hook cleanup 05 "$moddir/cleanup.sh"
    if runs_hooks_of_folders; then
        inst_simple "$moddir/zz-ibboot-complete.sh" /usr/lib/dracut/hooks/cmdline/99-zz-ibboot-complete.sh
    else
        inst_hook cmdline 99 "$moddir/zz-ibboot-complete.sh"
    fi
}

install() {
    local unit
    inst_binary "${ibboot_binary:-/usr/sbin/ibboot}" /usr/sbin/ibboot
    inst_multiple modprobe mkdir ln mv rm sleep
    inst_multiple -o reboot
    # Commands that ibboot explain names. A kdump image has little memory.
    is_for_kdump || inst_multiple -o cat grep tail
    install_site_settings
    # For the last hook too: a later hook may have changed the command line.
    inst_simple "$moddir/cmdline.sh" /usr/lib/ibboot/cmdline.sh
    inst_hook netroot 05 "$moddir/hold.sh"
    ! dracut_module_included ifcfg || inst_hook pre-pivot 84 "$moddir/ifcfg.sh"
    inst_hook emergency 10 "$moddir/emergency.sh"
    inst_simple "$moddir/job.sh" /usr/lib/ibboot/job.sh
    inst_simple "$moddir/settled.sh" /usr/lib/ibboot/settled.sh
    inst_simple "$moddir/netroot.sh" /usr/lib/ibboot/netroot.sh
    inst_simple "$moddir/finished.sh" /usr/lib/ibboot/finished.sh
    inst_simple "$moddir/ended.sh" /usr/lib/ibboot/ended.sh
    if dracut_module_included dracut-systemd; then
        for unit in ibboot.service ibboot-loader.socket ibboot-loader@.service; do
            inst_simple "$moddir/$unit" "$systemdsystemunitdir/$unit"
        done
        # systemd 259 loads this library when a unit has a SystemCallFilter=, and dracut 110 does not see
        # that: without the library the unit runs without a filter.
        inst_libdir_file "libseccomp.so*"
        inst_dir "$systemdutildir/system-generators"
        ln_r /usr/sbin/ibboot "$systemdutildir/system-generators/ibboot-generator"
        install_hooks
        inst_simple "$moddir/unit.sh" /usr/lib/ibboot/unit.sh
        inst_simple "$moddir/initqueue.conf" "$systemdsystemunitdir/dracut-initqueue.service.d/50-ibboot.conf"
        inst_simple "$moddir/networkd-wait-online.conf" \
            "$systemdsystemunitdir/systemd-networkd-wait-online.service.d/50-ibboot.conf"
        inst_simple "$moddir/nm-wait-online.conf" \
            "$systemdsystemunitdir/nm-wait-online-initrd.service.d/50-ibboot.conf"
        # The name of the same service with NetworkManager 1.54 and later.
        inst_simple "$moddir/nm-wait-online.conf" \
            "$systemdsystemunitdir/NetworkManager-wait-online-initrd.service.d/50-ibboot.conf"
    else
        inst_hook cmdline 93 "$moddir/cmdline.sh"
        inst_hook cleanup 05 "$moddir/cleanup.sh"
        # udevd, which names interfaces, starts before this stage.
        inst_hook pre-trigger 10 "$moddir/zz-ibboot-complete.sh"
        inst_hook cmdline 00 "$moddir/early.sh"
        inst_simple "$moddir/start.sh" /usr/lib/ibboot/start.sh
    fi
    return 0
}
