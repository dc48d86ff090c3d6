set -e
[ ! -e /run/ibboot ]
journalctl -b --no-pager | grep 'Started .*Device-Mapper Multipath Device Controller'
udevadm settle --timeout=120
