# SPDX-License-Identifier: MIT OR Apache-2.0
#
# strace(1) watches `ibboot up` and the process that reads the HCA, from the time when both wait for the subnet
# manager until the link is verified.

. /run/ibboot-fabric/lib.sh
wait_for 120 'systemctl is-active -q ibboot.service && [ -e /sys/class/net/ib0 ]'
wait_for 120 'systemctl is-active -q systemd-udev-trigger.service'
udevadm settle
wait_for 120 'dmesg | grep -q "ibboot: ib0 (softib0/1): waiting for the subnet manager"'
up=$(systemctl show -p MainPID --value ibboot.service)
set -- -p "$up"
for child in $(cat "/proc/$up/task/$up/children"); do
    set -- "$@" -p "$child"
done
"$place/strace/ld" --library-path "$place/strace/lib" "$place/strace/strace" -s 64 \
    -o /run/ibboot-test/out/up.strace "$@" 2> /run/ibboot-test/out/strace.err &
wait_for 60 "[ \$(grep -c ' attached' /run/ibboot-test/out/strace.err) -eq $(($# / 2)) ]"
fabric sm start
fabric address 10.0.0.2/24
