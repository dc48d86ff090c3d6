#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In the real root, made to look like an initramfs to ibboot, so that its lines carry the kernel log's time:
# a link whose cable is pulled and plugged by the host, and then two that never come. Files left here go to the host.

rounds=12
window=60

say() {
    echo "ibboot-bench: $*" > /dev/kmsg
}

# until COUNT TEXT: wait until the kernel log has so many lines with the text.
until_said() {
    tries=120
    while [ "$(dmesg | grep -c "$2")" -lt "$1" ]; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ]; then
            echo "not logged $1 times in 120 s: $2"
            exit 1
        fi
        sleep 1
    done
}

keep() {
    cat "/proc/$linger/status" > "linger.$1" && cat "/proc/$absent/status" > "absent.$1" || exit 1
}

touch /etc/initrd-release
mkdir -p /etc/cmdline.d
echo 'rd.ib.link=rxe0:rxe:eth0 rd.ib.link=rxe1:rxe:eth1 rd.ib.require=any rd.ib.timeout=900' > /etc/cmdline.d/bench.conf
ibboot up 2> linger.err &
linger=$!
until_said 1 'ibboot: rxe0/1: verified'
until_said 1 'ibboot: waiting: rxe1/1:'

round=1
while [ "$round" -le "$rounds" ]; do
    echo "ibboot-bench: cable out $round;" > /dev/console
    until_said "$round" 'ibboot: waiting: rxe0/1:'
    say "round $round"
    echo "ibboot-bench: cable in $round;" > /dev/console
    until_said $((round + 1)) 'ibboot: rxe0/1: verified'
    round=$((round + 1))
done

echo 'rd.ib.require=mlx5_0:1 rd.ib.timeout=900' > /etc/cmdline.d/bench.conf
ibboot up 2> absent.err &
absent=$!
until_said 1 'ibboot: waiting: mlx5_0:1:'
# What the start and the last event set off is not part of the wait.
sleep 5
say "wait begins"
keep before
sleep "$window"
keep after
say "wait ends"

kill -TERM "$linger" "$absent"
wait
rm -rf /etc/initrd-release /etc/cmdline.d /run/ibboot
