# An NFS server that speaks RDMA over Converged Ethernet, and nothing else.
. /run/ibboot-fabric/lib.sh
for module in crc32_generic rdma_rxe; do
    modprobe "$module" || failed "modprobe $module"
done
rdma link add rxe0 type rxe netdev eth0 || failed "no Soft-RoCE link"
nfs_server rdma
