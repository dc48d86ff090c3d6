. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -e /sys/class/infiniband/softib7 ]'
fabric up softib7
fabric sm start softib7
