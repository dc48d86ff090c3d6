# dhcpd as Debian builds it opens no InfiniBand interface ("Unsupported device type 32"): it stands behind a relay, in a
# namespace of its own. A node of the vendor class alone gets an address; its lease is renewed every few seconds.
. /run/ibboot-fabric/lib.sh
busybox insmod "$place/veth.ko" || failed "insmod veth"
fabric sm start
fabric address 10.0.0.2/24
ip netns add server
far ip link add relay type veth peer name server
far ip link set server netns server
far ip addr add 10.8.0.1/24 dev relay
far ip link set relay up
far sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
ip -n server addr add 10.8.0.2/24 dev server
ip -n server link set server up
ip -n server route add default via 10.8.0.1
cat > /run/fabric/dhcpd.conf <<'CONF'
option classless code 121 = string;
authoritative;
ping-check false;
default-lease-time 3600;
option dhcp-renewal-time 20;
class "cluster" { match if option vendor-class-identifier = "cluster"; }
subnet 10.8.0.0 netmask 255.255.255.0 { }
subnet 10.0.0.0 netmask 255.255.255.0 {
    option routers 10.0.0.2;
    option classless 18:0a:07:00:0a:00:00:02:00:0a:00:00:02;
    pool { allow members of "cluster"; range 10.0.0.30 10.0.0.30; }
}
CONF
: > /run/fabric/dhcpd.leases
ip netns exec server sh "$place/serve" dhcpd -4 -f -d -cf dhcpd.conf -lf dhcpd.leases --no-pid server &
far sh "$place/serve" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --user=root --group=root --pid-file \
    --log-facility=- --dhcp-relay=10.0.0.2,10.8.0.2
