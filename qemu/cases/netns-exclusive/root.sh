. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/module/ib_core/parameters/netns_mode)" = N ]
rdma system | tee rdma-system.txt
grep -q 'netns exclusive' rdma-system.txt
check 0 'rdma.netns (ib_core)       exclusive'
# Exclusive: a new network namespace has no RDMA device.
[ -z "$(unshare -n rdma link)" ]
