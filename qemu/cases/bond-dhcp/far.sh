# Each cable is a subnet of its own; the far end is a bond too. The server has an address for everybody: a client that
# changed its identifier would get another one. The verdict waits for a router's address, until the cable has been out.
. /run/ibboot-fabric/lib.sh
modprobe bonding max_bonds=0
fabric sm start softib1 1
fabric sm start softib1 2
far ip link add far0 type bond mode active-backup miimon 50
for port in 1 2; do
    name=$(fabric netdev softib1 $port)
    far ip link set "$name" master far0
done
far ip addr add 10.0.0.2/24 dev far0
far ip addr add fd00::2/64 dev far0 nodad
far ip link set far0 up
dhcp_server --dhcp-range=10.0.0.10,10.0.0.20,255.255.255.0,1h &
heard 240 'ibboot: bond0: DHCP: 10.*, for 3600 s'
heard 240 'ibboot: ib1 (softib0/2): verified: .*'
say "the cable is pulled"
fabric cable out
wait_for 60 'grep -q ib1 /sys/class/net/bond0/bonding/active_slave'
say "ib1 carries the bond"
wait_for 60 'far ping -c 1 -W 1 "$(ip -4 -o addr show dev bond0 | sed "s/.* inet \([0-9.]*\).*/\1/")"'
say "the cable is plugged in"
fabric cable in
far sh -c "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
far sh "$place/serve" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root --group=root \
    --pid-file --log-facility=- --dhcp-leasefile=/run/fabric/leases6 --dhcp-range=fd00::,ra-only
