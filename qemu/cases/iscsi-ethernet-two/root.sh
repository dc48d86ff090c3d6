set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
disks=/dev/disk/by-path/ip-10.0.0.2:3260-iscsi-iqn.2026-01.test
grep -q "^$(readlink -f "$disks:disk-lun-0") / ext4 " /proc/mounts
[ "$(cat "/sys/class/block/$(basename "$(readlink -f "$disks:data-lun-0")")/size")" = 2048 ]
