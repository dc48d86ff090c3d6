. /run/ibboot-fabric/lib.sh
fabric partitions 'Default=0x7fff,defmember=full:ALL=full;'
fabric sm start
