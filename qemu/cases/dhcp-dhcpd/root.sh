. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.30/24 .* ib0'
ip route | tee routes.txt
grep -q '^default via 10.0.0.2 dev ib0' routes.txt
grep -q '^10.7.0.0/24 via 10.0.0.2 dev ib0' routes.txt
wait_for 90 'journalctl -u ibboot-lease | grep -q "10.0.0.30/24 renewed by 10.8.0.2"'
journalctl -u ibboot-lease
systemctl is-active ibboot-lease
talk 10.0.0.30 10.0.0.2
