. /run/ibboot-fabric/lib.sh
fabric sm start softib3
fabric address 10.0.0.2/24 softib3
