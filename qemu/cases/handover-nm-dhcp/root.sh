. /run/ibboot-fabric/lib.sh
set -e
cat /run/NetworkManager/system-connections/10-ibboot-ib0.nmconnection
wait_for 120 'nmcli -g GENERAL.STATE device show ib0 | grep -q "^100 "'
nmcli -f DHCP4 device show ib0 | tee dhcp.txt
grep -q 'ip_address = 10.0.0.55' dhcp.txt
grep -qi 'dhcp_client_identifier = ff:00:00:00:00:00:02' dhcp.txt
[ "$(ip -4 -o addr show dev ib0 | wc -l)" = 1 ]
wait_for 60 'talk 10.0.0.55 10.0.0.2'
