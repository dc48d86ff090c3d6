set -e
[ ! -e /sys/bus/pci/devices/0000:01:00.0 ]
[ -z "$(ls /sys/class/infiniband)" ]
