. /run/ibboot-fabric/lib.sh
default='Default=0x7fff,ipoib,defmember=full:ALL=full;'
fabric partitions "$default"
fabric sm start
sleep 15
say "the partition arrives"
fabric partitions "$default" 'Blue=0x0001,ipoib,defmember=full:ALL=full;'
far_child 10.0.1.2/24
