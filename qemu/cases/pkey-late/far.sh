. /run/ibboot-fabric/lib.sh
default='Default=0x7fff,ipoib,defmember=full:ALL=full;'
fabric partitions "$default"
fabric sm start
heard 240 'ibboot: waiting: ib0.8001 (softib0/1): not a full member of the partition: the port.*'
far_child 10.0.1.2/24
say "the partition arrives"
fabric partitions "$default" 'Blue=0x0001,ipoib,defmember=full:ALL=full;'
