. /run/ibboot-fabric/lib.sh
heard 60 'ibboot: waiting: softib0/1: port is not ACTIVE: .*'
# The action waits for this line on the console.
echo "<3>boot-test: the HCA may go" > /dev/kmsg
wait_for 60 '[ ! -e /sys/bus/pci/devices/0000:01:00.0 ]'
say "the HCA is gone"
fabric sm start
