# Each cable is a subnet of its own. On the first DHCPv6 without a router, on the second a router whose prefix is for
# autoconfiguration, and a DHCPv6 server that knows name servers and no addresses. All of it is there before there is a link.
. /run/ibboot-fabric/lib.sh
fabric address fd00::2/64 softib1 1
fabric address fd00:1::2/64 softib1 2
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
dhcp_server --dhcp-range=fd00::10,fd00::10,64,1h --dhcp-range=fd00:1::,ra-stateless \
    --dhcp-option=option6:dns-server,[fd00:1::53] --dhcp-option=option6:domain-search,cluster.example &
wait_for 120 'grep -q "DHCPv6, IP range" /run/ibboot-test/out/far.txt'
fabric sm start softib1 1
fabric sm start softib1 2
wait
