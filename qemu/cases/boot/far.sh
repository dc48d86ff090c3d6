# An NFS server at the far end, which can do connected mode too.
. /run/ibboot-fabric/lib.sh
fabric sm start
name=$(fabric netdev)
far sh -c "echo connected > /sys/class/net/$name/mode"
fabric address 10.0.0.2/24
nfs_server
