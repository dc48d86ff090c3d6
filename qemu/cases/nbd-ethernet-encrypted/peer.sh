. /run/ibboot-fabric/lib.sh
nbd_server
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h
