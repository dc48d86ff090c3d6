# A node of the vendor class alone gets an address of the range; its lease is renewed every few seconds.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
name=$(fabric netdev)
cat > /run/fabric/dhcpd.conf <<'CONF'
authoritative;
ping-check false;
default-lease-time 3600;
option dhcp-renewal-time 20;
class "cluster" { match if option vendor-class-identifier = "cluster"; }
subnet 10.0.0.0 netmask 255.255.255.0 {
    option routers 10.0.0.2;
    option rfc3442 18:0a:07:00:0a:00:00:02:00:0a:00:00:02;
    pool { allow members of "cluster"; range 10.0.0.30 10.0.0.30; }
}
CONF
sed -i '1i option rfc3442 code 121 = string;' /run/fabric/dhcpd.conf
: > /run/fabric/dhcpd.leases
far sh "$place/serve" dhcpd -4 -f -d -cf dhcpd.conf -lf dhcpd.leases --no-pid "$name"
