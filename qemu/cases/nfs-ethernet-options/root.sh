set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^10.0.0.2:/ / nfs4 .*,wsize=4096,.*addr=10.0.0.2 ' /proc/mounts
ip -4 addr show dev eth0 | grep 'inet 10.0.0.55/24 .* eth0'
