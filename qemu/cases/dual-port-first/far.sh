. /run/ibboot-fabric/lib.sh
fabric cable out softib0 2
fabric sm start
fabric address 10.0.0.2/24
