# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A subnet manager at once or, where the command line says so, some seconds after the kernel's start; a DHCP server
# where it asks for one, which is there before the subnet manager; an NFS server of the disk likewise, for which the
# boot waits: its address is there as soon as somebody has loaded IPoIB.

. /run/ibboot-fabric/lib.sh
# Everything that happens to ib0 becomes a record of the kernel log, whoever does it. The observer has the highest
# priority: a record does not wait for the program that it is about.
busybox renice -n -20 -p $$
ip -o monitor link address | while read -r line; do
    case $line in
        *ib0*) echo "ibboot-bench: event $line" > /dev/kmsg ;;
    esac
done &
busybox renice -n 20 -p $$
at=$(sed -n 's/.*ibboot-bench.sm=\([0-9]*\).*/\1/p' /proc/cmdline)
[ -z "$at" ] || wait_for 120 "[ \$(cut -d. -f1 /proc/uptime) -ge $at ]"
if grep -q ibboot-bench.dhcp /proc/cmdline; then
    fabric address 10.0.0.2/24
    dhcp_server --dhcp-range=10.0.0.1,10.0.0.1,255.255.255.0,1h &
    wait_for 60 'grep -q "DHCP, IP range" /run/ibboot-test/out/far.txt'
fi
! grep -q ibboot-bench.root /proc/cmdline || nfs_server
say "the subnet manager starts"
fabric sm start
if grep -q ibboot-bench.root /proc/cmdline; then
    : > /run/fabric/serves
    # As few processes as can be: they take their time from the boot.
    until [ -e /sys/class/net/ib1 ]; do
        sleep 0.2
    done
    if ip link set ib1 netns fabric && ip -n fabric addr add 10.0.0.2/24 dev ib1 && ip -n fabric link set ib1 up; then
        say "the server has its address"
    else
        failed "the server has no address"
    fi
fi
wait
