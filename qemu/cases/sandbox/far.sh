# SPDX-License-Identifier: MIT OR Apache-2.0
. /run/ibboot-fabric/lib.sh
busybox=/run/ibboot-fabric/bin/busybox
wait_for 120 'systemctl is-active -q ibboot.service && grep -qx 32 /sys/class/net/*/type'
up=$(systemctl show -p MainPID --value ibboot.service)

# writes WHERE COMMAND...: whether the command can open each file for writing; nothing is written
writes() {
    where=$1
    shift
    for file in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/class/net/lo/ifalias \
        /new /dev/new /run/new /etc/new /tmp/new; do
        "$@" sh -c ": > $file" 2> /run/sandbox.err && echo "$where: $file: writable" ||
            echo "$where: $file: $(sed 's/.*: //' /run/sandbox.err)"
    done
}

{
    writes outside env
    writes inside "$busybox" nsenter -t "$up" -m --
    grep -E '^(CapBnd|CapEff|CapPrm|NoNewPrivs|Seccomp):' "/proc/$up/status"
} > /run/ibboot-test/out/sandbox.txt 2>&1
rm -f /new /dev/new /run/new /etc/new /tmp/new
fabric sm start
