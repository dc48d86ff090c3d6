. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address fd00::2/64
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
dhcp_server --enable-ra --dhcp-range=fd00::10,fd00::10,64,1h --dhcp-host=id:00:03:00:20:06:07:08:09,[fd00::30]
