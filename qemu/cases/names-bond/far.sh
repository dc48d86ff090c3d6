. /run/ibboot-fabric/lib.sh
fabric sm start softib1 1
fabric sm start softib1 2
fabric address 10.0.0.2/24 softib1 2
