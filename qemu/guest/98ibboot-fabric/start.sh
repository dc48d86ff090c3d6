#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Before anything of ibboot runs, there is an HCA here and the far end of its cable elsewhere, in the
# namespace `fabric`. What happens there from now on is the case's far.sh, beside the boot.

mkdir -p /run/ibboot-test/out
# Without systemd nothing in /run may be run.
mount -o remount,exec /run
mv /ibboot-fabric /run/
. /run/ibboot-fabric/lib.sh
mkdir -p "$place/applets"
busybox --install -s "$place/applets"

for module in ib_uverbs ib_umad; do
    modprobe "$module" || failed "modprobe $module"
done
# ibv=1: its asynchronous events can be heard, as those of hardware.
parameters="ibv=1 $(cat "$place/parameters")"
if grep -q 'rd\.driver\.post=softib' /proc/cmdline; then
    # Whoever reads that argument loads it: far.sh waits for the HCAs and takes its own.
    # systemd makes /usr of an initramfs read-only from version 256 on.
    ! grep -q ' /usr ' /proc/mounts || mount -o remount,bind,rw /usr || failed "remount /usr"
    mkdir -p /run/modprobe.d "/lib/modules/$(uname -r)/updates"
    echo "options softib $parameters" > /run/modprobe.d/softib.conf
    cp "$place/softib.ko" "/lib/modules/$(uname -r)/updates/"
    depmod -a || failed depmod
else
    # shellcheck disable=SC2086
    busybox insmod "$place/softib.ko" $parameters || failed "insmod softib"
    far_hcas=''
    for hca in softib1 softib3 softib5 softib7; do
        [ ! -e "/sys/class/infiniband/$hca" ] || far_hcas="$far_hcas $hca"
    done
    [ ! -e "$place/here" ] || far_hcas=here
    # shellcheck disable=SC2086
    fabric up $far_hcas
    say "the fabric is there:$far_hcas"
fi
sh "$place/far.sh" < /dev/null > /run/ibboot-test/out/far.txt 2>&1 &
