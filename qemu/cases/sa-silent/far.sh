. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 mad 'sa drop all'
fabric sm start
