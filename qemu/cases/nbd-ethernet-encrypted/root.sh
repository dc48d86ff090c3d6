set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^/dev/mapper/disk / ext4 ' /proc/mounts
[ "$(ls /sys/class/block/dm-0/slaves)" = nbd0 ]
