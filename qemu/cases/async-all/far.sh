. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -e /sys/bus/pci/devices/0000:02:00.0/infiniband ] && [ -e /sys/bus/pci/devices/0000:04:00.0/infiniband ]'
first=$(ls /sys/bus/pci/devices/0000:02:00.0/infiniband) second=$(ls /sys/bus/pci/devices/0000:04:00.0/infiniband)
fabric up "$first" "$second"
fabric sm start "$first"
fabric sm start "$second"
