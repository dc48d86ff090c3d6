. /run/ibboot-fabric/lib.sh
set -e
ip -6 addr show dev ib0 | grep -A 1 'inet6 fd00::10/128' | grep -q 'valid_lft forever'
ip -6 route | tee routes.txt
grep -q '^fd00::/64 dev ib0' routes.txt
grep -q '^default via fe80::.* dev ib0' routes.txt
ping -c 3 -i 0.2 -W 10 -I fd00::10 fd00::2
# A slow boot shall not outlive a short lease: half of a long one is over as soon as leases.json says so.
systemctl stop ibboot-lease
sed -i 's/"renew_s": 1800/"renew_s": 5/' /run/ibboot/lease/leases.json
grep -q '"renew_s": 5,' /run/ibboot/lease/leases.json
systemctl start ibboot-lease
wait_for 120 'journalctl -u ibboot-lease | grep -q "fd00::10/128 renewed by fe80::.*, for 3600 s"'
journalctl -u ibboot-lease
systemctl is-active ibboot-lease
check 0 'fd00::10/128 of fe80::'
