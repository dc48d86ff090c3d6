# The server of the root is another one than the server of the addresses.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
far ip addr add 10.0.0.3/24 dev "$(fabric netdev)"
nfs_server
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h --dhcp-option=option:root-path,/ \
    --dhcp-boot=none,far,10.0.0.3
