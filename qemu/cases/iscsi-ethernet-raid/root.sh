set -e
# udev of the real root is at rest when the boots are compared.
udevadm settle --timeout=120
[ ! -e /run/ibboot ]
grep ' / ' /proc/mounts
grep -q '^/dev/md127 / ext4 ' /proc/mounts
grep '^md127 : active raid0 sd[ab]\[[01]\] sd[ab]\[[01]\]$' /proc/mdstat
