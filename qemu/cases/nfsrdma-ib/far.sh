# An NFS server at the far end that speaks RDMA, and nothing else.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
nfs_server rdma
