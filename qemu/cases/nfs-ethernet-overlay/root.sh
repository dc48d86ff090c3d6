set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^LiveOS_rootfs / overlay ' /proc/mounts
grep -q '^10.0.0.2:/ .* nfs4\? .*addr=10.0.0.2 ' /proc/mounts
