set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
disk=/dev/disk/by-path/ip-10.0.0.2:3260-iscsi-iqn.2026-01.test:disk-lun-0
grep -q "^$(readlink -f "$disk") / ext4 " /proc/mounts
[ "$(cat /sys/firmware/ibft/target0/target-name)" = iqn.2026-01.test:disk ]
ip address show dev ibft0 | grep -q 'inet 10\.0\.0\.55/24 '
