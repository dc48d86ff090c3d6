set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^/dev/sda / ext4 ' /proc/mounts
[ "$(cat /sys/class/scsi_host/host*/proc_name)" = iscsi_tcp ]
