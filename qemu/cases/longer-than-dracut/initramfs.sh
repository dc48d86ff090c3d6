echo '<3>boot-test: initramfs' > /dev/kmsg
# By the clock of the guest, which counts its deadlines too.
(
    sleep 40
    echo '<3>boot-test: the cable is plugged in' > /dev/kmsg
) < /dev/null > /dev/null 2>&1 &
