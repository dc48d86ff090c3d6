# Each cable is a subnet of its own; the far end is a bond too.
. /run/ibboot-fabric/lib.sh
modprobe bonding max_bonds=0
fabric sm start softib1 1
fabric sm start softib1 2
far ip link add far0 mtu 2044 type bond mode active-backup miimon 50
for port in 1 2; do
    name=$(fabric netdev softib1 $port)
    far ip link set "$name" master far0
    [ $port = 2 ] || far ip link set far0 type bond primary "$name"
done
far ip addr add 10.0.0.2/24 dev far0
far ip link set far0 up
