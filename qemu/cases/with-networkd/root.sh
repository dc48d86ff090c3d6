. /run/ibboot-fabric/lib.sh
set -e
link() {
    cat "/run/systemd/netif/links/$(cat "/sys/class/net/$1/ifindex")"
}
# In the initramfs.
grep -x 'NETWORK_FILE=/run/systemd/network/[0-9]*-eth0.network' initramfs-eth0
grep -qx IPV4_ADDRESS_STATE=routable initramfs-eth0
grep -qx ADMIN_STATE=unmanaged initramfs-ib0
# systemd-network-generator wrote a file for ib0 too.
grep -x '[0-9]*-ib0.network' initramfs-networks
# Here.
wait_for 180 'link eth0 | grep -q ^NETWORK_FILE=.*-eth0.network'
link ib0 | grep -qx ADMIN_STATE=unmanaged
networkctl --no-pager list
ip addr show eth0 | grep -q 'inet 10.1.0.5/24'
ip addr show ib0 | grep -q 'inet 10.0.0.1/24'
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
[ "$(cat /sys/class/net/ib0/carrier_changes)" = "$(cat carrier_changes)" ]
cat /run/systemd/network/00-ibboot.network
talk 10.0.0.1 10.0.0.2 60000
# A reset of the HCA creates the interface anew: another queue pair number, another address.
index=$(cat /sys/class/net/ib0/ifindex)
fabric knob softib0 reset 1000
wait_for 60 '[ "$(cat /sys/class/net/ib0/ifindex || echo none)" -gt "$index" ]'
wait_for 60 'link ib0 | grep -q ^ADMIN_STATE=unmanaged'
# The check after this script compares with the boot.
echo connected > /sys/class/net/ib0/mode
ip link set ib0 mtu 65520 up
ip addr add 10.0.0.1/24 dev ib0
wait_for 60 'talk 10.0.0.1 10.0.0.2 60000'
link ib0 | grep -qx ADMIN_STATE=unmanaged
