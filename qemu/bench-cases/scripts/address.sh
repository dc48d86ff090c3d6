#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The least that sets the address of a boot of peers.py: no check, no error and no message.

modprobe -a ib_ipoib ib_umad rdma_ucm
until [ -e /sys/class/net/ib0 ]; do
    sleep 0.05
done
ip link set ib0 up
until [ "$(cat /sys/class/net/ib0/carrier)" = 1 ]; do
    sleep 0.05
done
ip addr add 10.0.0.1/24 dev ib0
