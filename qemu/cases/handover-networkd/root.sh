. /run/ibboot-fabric/lib.sh
set -e
grep -q '"handover": "networkd"' /run/ibboot/state.json
[ ! -e /run/systemd/network/00-ibboot.network ]
cat /run/systemd/network/10-ibboot-ib0.network
link="/run/systemd/netif/links/$(cat /sys/class/net/ib0/ifindex)"
wait_for 60 "grep -qx NETWORK_FILE=/run/systemd/network/10-ibboot-ib0.network $link"
wait_for 120 "grep -qx ADMIN_STATE=configured $link"
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
[ "$(cat /sys/class/net/ib0/carrier_changes)" = "$(cat carrier_changes)" ]
talk 10.0.0.1 10.0.0.2 60000
# A reset of the HCA creates the interface anew: another queue pair number, another address.
address=$(cat /sys/class/net/ib0/address)
index=$(cat /sys/class/net/ib0/ifindex)
fabric knob softib0 reset 1000
wait_for 60 '[ "$(cat /sys/class/net/ib0/ifindex || echo none)" -gt "$index" ]'
[ "$(cat /sys/class/net/ib0/address)" != "$address" ]
link="/run/systemd/netif/links/$(cat /sys/class/net/ib0/ifindex)"
wait_for 60 "grep -qx NETWORK_FILE=/run/systemd/network/10-ibboot-ib0.network $link"
wait_for 120 "grep -qx ADMIN_STATE=configured $link"
wait_for 60 'talk 10.0.0.1 10.0.0.2'
# systemd-networkd 252 sets no mode of an existing interface. The check after this script compares with the boot.
echo connected > /sys/class/net/ib0/mode
ip link set ib0 mtu 65520
