# Nobody is a router by the broadcast address, and a datagram carries no 65520 bytes.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
dhcp_server --dhcp-range=10.0.0.10,10.0.0.10,255.255.255.0,1h \
    --dhcp-option=option:mtu,65520 --dhcp-option-force=12,1.2.3.4 \
    --dhcp-option=option:classless-static-route,10.7.0.0/16,10.0.0.255,0.0.0.0/0,10.0.0.2
