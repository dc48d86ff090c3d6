. /run/ibboot-fabric/lib.sh
fabric sm start
sleep 20
say "the function is probed again"
echo 0000:01:00.0 > /sys/bus/pci/drivers_probe
