# A FIFO without a reader: a process that opens the FIFO for writing sleeps in the kernel. far.sh has a
# mount namespace of its own.
(
    mkfifo /run/hangs
    until [ -e /sys/class/net/ib0/create_child ]; do sleep 0.1; done
    mount --bind /run/hangs /sys/class/net/ib0/create_child
    : > /run/write-hangs
) < /dev/null > /dev/null 2>&1 &
