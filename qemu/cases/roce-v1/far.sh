. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -n "$(ls /sys/class/infiniband/softib2/device/net 2> /dev/null)" ]'
ip link set "$(ls /sys/class/infiniband/softib2/device/net)" up
wait_for 60 'grep -q ACTIVE /sys/class/infiniband/softib2/ports/1/state'
say "the Ethernet port is ACTIVE"
