# Each cable is a subnet of its own. The first router's flags say that DHCPv6 knows name servers (O), the second one's that
# it has addresses too (M); both have prefixes for autoconfiguration. The DHCPv6 server behind them answers nobody.
. /run/ibboot-fabric/lib.sh
fabric address fd00::2/64 softib1 1
fabric address fd00:1::2/64 softib1 2
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
dhcp_server --dhcp-range=fd00::,ra-stateless --dhcp-range=fd00:1::10,fd00:1::10,slaac,64,1h --dhcp-ignore=tag:!known &
wait_for 120 'grep -q "DHCPv6, IP range" /run/ibboot-test/out/far.txt'
fabric sm start softib1 1
fabric sm start softib1 2
wait
