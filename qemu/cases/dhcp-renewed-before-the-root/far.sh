. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,2m
