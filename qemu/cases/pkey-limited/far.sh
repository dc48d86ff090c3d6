. /run/ibboot-fabric/lib.sh
fabric partitions 'Default=0x7fff,ipoib,defmember=limited:ALL=limited,SELF=full;'
fabric sm start
fabric address 10.0.0.2/24
