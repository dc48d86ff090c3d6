. /run/ibboot-fabric/lib.sh
fabric sm start
