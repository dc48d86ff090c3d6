set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^/dev/nbd0 / ext4 .*errors=panic' /proc/mounts
ip -4 addr show dev eth0 | grep 'inet 10.0.0.55/24 .* eth0'
