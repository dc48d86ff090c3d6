#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The init of a second machine, at the other end of an Ethernet cable: it is its own far end, has the address
# 10.0.0.2/24, and runs the case's peer.sh (here: far.sh) until it is switched off.

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mv /ibboot-fabric /run/
. /run/ibboot-fabric/lib.sh
mkdir -p "$place/applets" /run/fabric
busybox --install -s "$place/applets"
: > "$place/alone"
for module in virtio_pci virtio_net; do
    modprobe "$module" || failed "modprobe $module"
done
wait_for 60 '[ -e /sys/class/net/eth0 ]'
ip addr add 10.0.0.2/24 dev eth0
ip link set eth0 up
sh "$place/far.sh" < /dev/null > /dev/console 2>&1 || failed "peer.sh"
while :; do sleep 60; done
