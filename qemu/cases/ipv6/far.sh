# A router and DHCPv6 server on the far end, the way a site has it: dnsmasq. It knows the node by its port GUID.
. /run/ibboot-fabric/lib.sh
fabric sm start
name=$(fabric netdev)
# The first answer is sent from the link-local address, not only after its duplicate address detection.
far sh -c "echo 0 > /proc/sys/net/ipv6/conf/$name/accept_dad"
fabric address fd00::2/64
far ip -6 addr add fd00:1::2/64 dev "$name"
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
dhcp_server --enable-ra \
    --dhcp-range=fd00:1::10,fd00:1::20,slaac,64,1h --dhcp-host="id:00:03:00:20:$(near_guid),[fd00:1::55]" \
    --dhcp-option=option6:dns-server,[fd00:1::53] --dhcp-option=option6:domain-search,cluster.example
