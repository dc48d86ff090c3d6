. /run/ibboot-fabric/lib.sh
set -e
[ ! -e /run/ibboot ]
# rdma-core's unit loaded ib_ipoib.
wait_for 120 'rdma link | grep "^link softib0/1 .*state ACTIVE"'
[ -e /sys/class/net/ib0 ]
udevadm settle --timeout=120
