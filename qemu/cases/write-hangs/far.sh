. /run/ibboot-fabric/lib.sh
fabric partitions 'Default=0x7fff,ipoib,defmember=full:ALL=full;' 'Blue=0x0001,ipoib,defmember=full:ALL=full;'
fabric sm start
fabric sm start softib3
