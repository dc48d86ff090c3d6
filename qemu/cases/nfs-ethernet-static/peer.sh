. /run/ibboot-fabric/lib.sh
nfs_server
