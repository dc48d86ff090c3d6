. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
dhcp_server --dhcp-vendorclass=set:cluster,cluster \
    --dhcp-range=tag:cluster,10.0.0.30,10.0.0.30,255.255.255.0,1h \
    --dhcp-range=tag:!cluster,10.0.0.10,10.0.0.10,255.255.255.0,1h
