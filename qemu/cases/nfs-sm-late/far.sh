. /run/ibboot-fabric/lib.sh
wait_for 240 'dmesg | grep -q "ibboot: ib0: is up"'
sleep 30
say "the subnet manager starts"
fabric sm start
fabric address 10.0.0.2/24
nfs_server rdma
