# The interfaces exist before ibboot starts. A process that opens the FIFO, which has no reader, for
# writing sleeps in the kernel.
modprobe ib_ipoib
mkfifo /run/hangs
mount --bind /run/hangs /sys/class/net/ib0/create_child
