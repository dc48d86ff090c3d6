. /run/ibboot-fabric/lib.sh
set -e
# In the initramfs.
grep -q '^eth0 .* connected ' initramfs-devices.txt
grep -q '^ib0 .* unmanaged ' initramfs-devices.txt
# Here.
cat /run/NetworkManager/system-connections/10-ibboot-ib0.nmconnection
wait_for 180 'nmcli -g GENERAL.STATE device show ib0 | grep -q "^100 "'
nmcli device | tee devices.txt
nmcli -f DHCP4 device show ib0 | tee dhcp.txt
grep -q 'ip_address = 10.0.0.55' dhcp.txt
[ "$(ip -4 -o addr show dev ib0 | wc -l)" = 1 ]
wait_for 60 'nmcli -g GENERAL.STATE device show eth0 | grep -q "^100 "'
ip addr show eth0 | grep -q 'inet 10.1.0.5/24'
wait_for 60 'talk 10.0.0.55 10.0.0.2'
