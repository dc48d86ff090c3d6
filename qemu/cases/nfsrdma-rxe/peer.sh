# An NFS server that speaks RDMA over Converged Ethernet, and nothing else.
. /run/ibboot-fabric/lib.sh
wait_for 60 '[ -e /sys/class/net/eth0 ]'
ip addr add 10.0.0.2/24 dev eth0
ip link set eth0 up
for module in crc32_generic rdma_rxe; do
    modprobe "$module" || failed "modprobe $module"
done
rdma link add rxe0 type rxe netdev eth0 || failed "no Soft-RoCE link"
nfs_server rdma
