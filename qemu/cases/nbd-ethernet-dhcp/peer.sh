. /run/ibboot-fabric/lib.sh
nbd_server
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h --dhcp-option=option:root-path,nbd:10.0.0.2:disk::errors=panic
