. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.30/24 .* ib0'
ip route | tee routes.txt
grep -q '^default via 10.0.0.2 dev ib0' routes.txt
grep -q '^10.7.0.0/24 via 10.0.0.2 dev ib0' routes.txt
wait_for 90 'journalctl -u ibboot-lease | grep -q "10.0.0.30/24 renewed by 10.8.0.2"'
journalctl -u ibboot-lease
systemctl is-active ibboot-lease
# A user of its own, with CAP_NET_BIND_SERVICE, CAP_NET_ADMIN and CAP_NET_RAW alone, and leases that check believes.
pid=$(systemctl show --property MainPID --value ibboot-lease)
[ "$(stat -c %U "/proc/$pid" /run/ibboot/lease/leases.json /run/ibboot/state.json | tr '\n' ' ')" = 'ibboot-lease ibboot-lease root ' ]
grep CapEff: "/proc/$pid/status" | grep -q '0000000000003400'
check 0 'lease.present              10.0.0.30/24 of 10.8.0.2'
# Routes that go with the link come back with it.
ip link set ib0 down
ip link set ib0 up
wait_for 90 'ip route | grep -q "^default via 10.0.0.2 dev ib0"'
talk 10.0.0.30 10.0.0.2
