# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A subnet manager at once or, where the command line says so, some seconds after the kernel's start; a DHCP server
# where it asks for one, which is there before the subnet manager.

. /run/ibboot-fabric/lib.sh
at=$(sed -n 's/.*ibboot-bench.sm=\([0-9]*\).*/\1/p' /proc/cmdline)
[ -z "$at" ] || wait_for 120 "[ \$(cut -d. -f1 /proc/uptime) -ge $at ]"
if grep -q ibboot-bench.dhcp /proc/cmdline; then
    fabric address 10.0.0.2/24
    far sh "$place/serve" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --no-ping --user=root \
        --group=root --pid-file --log-facility=- --log-dhcp \
        --dhcp-leasefile=/run/fabric/leases --dhcp-range=10.0.0.1,10.0.0.1,255.255.255.0,1h &
    wait_for 60 'grep -q "DHCP, IP range" /run/ibboot-test/out/far.txt'
fi
say "the subnet manager starts"
fabric sm start
wait
