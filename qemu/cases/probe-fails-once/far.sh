. /run/ibboot-fabric/lib.sh
wait_for 240 '[ -e /sys/class/infiniband/softib1 ]'
fabric knob softib0 probe_error 0
wait_for 240 '[ -e /sys/class/infiniband/softib0 ]'
# Until then it shows which driver is that of its model.
fabric up softib1
fabric sm start
