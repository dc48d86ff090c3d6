. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 events "drop any"
heard 240 'ibboot: waiting: softib0/1: port is not ACTIVE: INIT, .*'
fabric sm start
