. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 force_state init
fabric sm start
