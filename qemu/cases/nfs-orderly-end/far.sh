# The address and the root file system are of one server.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
nfs_server
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h --dhcp-option=option:root-path,nfs:10.0.0.2:/
