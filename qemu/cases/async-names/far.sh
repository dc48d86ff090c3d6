. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -e /sys/bus/pci/devices/0000:04:00.0/infiniband ]'
far=$(ls /sys/bus/pci/devices/0000:04:00.0/infiniband)
fabric up "$far"
fabric sm start "$far"
