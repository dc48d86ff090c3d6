. /run/ibboot-fabric/lib.sh
set -e
grep -q '"handover": "nm"' /run/ibboot/state.json
[ ! -e /run/NetworkManager/conf.d/90-ibboot.conf ]
cat /run/NetworkManager/system-connections/10-ibboot-ib0.nmconnection
wait_for 120 'nmcli -g GENERAL.STATE device show ib0 | grep -q "^100 "'
nmcli device | tee devices.txt
grep '^ib0 .* connected .*10-ibboot-ib0' devices.txt
wait_for 120 'ibboot check --all > check-nm.txt'
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
wait_for 60 'talk 10.0.0.1 10.0.0.2 60000'
