. /run/ibboot-fabric/lib.sh
set -e
[ "$(ls /sys/bus/pci/devices/0000:03:00.0/net)" = ibs3 ]
[ "$(ls /sys/bus/pci/devices/0000:01:00.0/net)" = ibs1 ]
[ "$(ibboot check --format json | grep -c '"name": "softib0/1"')" = 0 ]
is_state softib0 1 INIT
talk 10.0.0.1 10.0.0.2 2016
