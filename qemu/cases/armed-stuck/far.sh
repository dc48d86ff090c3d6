. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 force_state armed
fabric sm start
