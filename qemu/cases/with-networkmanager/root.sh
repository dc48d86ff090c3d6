. /run/ibboot-fabric/lib.sh
set -e
# In the initramfs.
grep -q '^eth0 .* connected ' initramfs-devices.txt
grep -q '^ib0 .* unmanaged ' initramfs-devices.txt
# nm-initrd-generator wrote a profile for ib0 too, which says datagram.
grep -q '^interface-name=ib0$' initramfs-profiles.txt
# Here.
wait_for 180 'nmcli -g GENERAL.STATE device show eth0 | grep -q "^100 "'
nmcli device | tee devices.txt
grep -q '^ib0 .* unmanaged ' devices.txt
ip addr show eth0 | grep -q 'inet 10.1.0.5/24'
ip addr show ib0 | grep -q 'inet 10.0.0.1/24'
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
[ "$(cat /sys/class/net/ib0/mtu)" = 65520 ]
[ "$(cat /sys/class/net/ib0/carrier_changes)" = "$(cat carrier_changes)" ]
ls /run/NetworkManager/system-connections | tee profiles.txt
[ "$(grep -c ib0 profiles.txt)" = 0 ]
cat /run/NetworkManager/conf.d/90-ibboot.conf
talk 10.0.0.1 10.0.0.2 60000
