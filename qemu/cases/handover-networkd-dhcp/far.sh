# Only the identifier of the boot has this address.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
dhcp_server --dhcp-range=10.0.0.10,10.0.0.20,255.255.255.0,1h \
    --dhcp-host="id:20:$(near_guid),10.0.0.55,node5"
