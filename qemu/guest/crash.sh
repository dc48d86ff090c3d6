#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# crash.sh [ARGUMENT...]: in the real root, load the kernel that saves a dump, with the command line of this one and the
# arguments, lose the cable of eth0, and crash.

place=/run/ibboot-test/crash
cmdline="$(sed 's/ crashkernel=[^ ]*//' /proc/cmdline) nr_cpus=1 irqpoll reset_devices $*"
# kexec_file_load(2) with KEXEC_FILE_ON_CRASH, as kexec(8) has it with -p -s: Debian's package of that brings services
# which no other boot needs.
perl -e '
    my ($kernel, $initrd, $cmdline) = @ARGV;
    open(my $k, "<", $kernel) or die "$kernel: $!\n";
    open(my $i, "<", $initrd) or die "$initrd: $!\n";
    $cmdline .= "\0";
    syscall(320, fileno($k), fileno($i), length($cmdline), $cmdline, 2) == 0 or die "kexec_file_load: $!\n";
' "$place/vmlinuz" "$place/initramfs.img" "$cmdline" || exit 1
echo "<3>boot-test: the cable goes" > /dev/kmsg
end=$(($(cut -d. -f1 /proc/uptime) + 120))
until [ "$(cat /sys/class/net/eth0/carrier)" = 0 ]; do
    [ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ] || {
        echo "eth0 has carrier still"
        exit 1
    }
    sleep 0.1
done
echo c > /proc/sysrq-trigger
