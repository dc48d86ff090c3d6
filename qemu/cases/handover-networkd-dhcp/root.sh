. /run/ibboot-fabric/lib.sh
set -e
cat /run/systemd/network/10-ibboot-ib0.network
lease="/run/systemd/netif/leases/$(cat /sys/class/net/ib0/ifindex)"
wait_for 120 "grep -x ADDRESS=10.0.0.55 $lease"
cat "$lease"
grep -qi '^CLIENTID=20' "$lease"
[ "$(ip -4 -o addr show dev ib0 | wc -l)" = 1 ]
wait_for 60 'talk 10.0.0.55 10.0.0.2'
