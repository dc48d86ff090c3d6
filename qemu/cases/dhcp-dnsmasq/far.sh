# The node is known by its port GUID alone, as its boot firmware would send it.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
dhcp_server --dhcp-range=10.0.0.10,10.0.0.20,255.255.255.0,1h \
    --dhcp-host="id:ff:00:00:00:00:00:02:00:00:02:c9:00:$(near_guid),10.0.0.55,node5" \
    --dhcp-option=option:root-path,nfs:10.0.0.2:/srv/root --dhcp-option=option:mtu,1500 \
    --dhcp-option=option:router,10.0.0.2
