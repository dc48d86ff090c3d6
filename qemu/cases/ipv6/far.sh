# A router on the far end, the way a site has it: dnsmasq.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address fd00::2/64
name=$(fabric netdev)
far ip -6 addr add fd00:1::2/64 dev "$name" nodad
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
far sh "$place/serve" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root --group=root \
    --pid-file --log-facility=- --log-dhcp --enable-ra --dhcp-range=fd00:1::,ra-only
