. /run/ibboot-fabric/lib.sh
name=$(fabric netdev)
wait_for 60 '[ "$(cat /sys/class/net/ib0/operstate)" = down ] && [ "$(cat /sys/class/net/ib0/mode)" = connected ]'
sleep 3
say "the HCA is reset"
fabric knob softib0 reset 3000
wait_for 60 '[ -e /sys/class/infiniband/softib0 ]'
say "the HCA is back"
sleep 2
fabric sm start
far sh -c "echo connected > /sys/class/net/$name/mode"
fabric address 10.0.0.2/24
