# An NFS server at the far end, which can do connected mode too.
. /run/ibboot-fabric/lib.sh
fabric sm start
far_connected 10.0.0.2/24
nfs_server
