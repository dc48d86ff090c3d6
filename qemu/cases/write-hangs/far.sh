. /run/ibboot-fabric/lib.sh
default='Default=0x7fff,ipoib,defmember=full:ALL=full;'
fabric partitions "$default"
fabric sm start
fabric sm start softib3
heard 240 'ibboot: waiting: ib0.8001 (softib0/1): not in the partition: only 0xffff, .*'
wait_for 240 '[ -e /run/write-hangs ]'
say "the partition arrives"
fabric partitions "$default" 'Blue=0x0001,ipoib,defmember=full:ALL=full;'
