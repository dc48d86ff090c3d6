. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -e /sys/class/infiniband/softib1 ]'
fabric up softib1
fabric sm start
fabric address 10.0.0.2/24
