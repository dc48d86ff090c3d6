. /run/ibboot-fabric/lib.sh
set -e
ip -6 addr show dev ib0 | grep -A 1 'inet6 fd00::10/128' | grep -q 'valid_lft forever'
ip -6 route | tee routes.txt
grep -q '^fd00::/64 dev ib0' routes.txt
grep -q '^default via fe80::250:f700:0:a012 dev ib1' routes.txt
ping -c 3 -i 0.2 -W 10 -I fd00::10 fd00::2
ping -c 3 -i 0.2 -W 10 fd00:1::2
check 0 'lease6.present             fd00::10/128 of fe80::250:f700:0:a011, for 3600 s' 'address.present            fd00::10/128' \
    'address.present            fd00:1::250:f700:0:a002/64' 'ok: 2 of 2 links verified'
wait_for 120 'journalctl -u ibboot-lease | grep -q "ib0: fd00::10/128 of fe80::250:f700:0:a011 is kept, for 3600 s"'
systemctl is-active ibboot-lease
if journalctl -u ibboot-lease | grep ib1; then exit 1; fi
