echo '<3>boot-test: initramfs' > /dev/kmsg
