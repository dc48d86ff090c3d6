. /run/ibboot-fabric/lib.sh
nfs_server
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h --dhcp-option=option:root-path,nfs:10.0.0.2:/
