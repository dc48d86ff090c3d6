# An NFS server at the far end.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
nfs_server
