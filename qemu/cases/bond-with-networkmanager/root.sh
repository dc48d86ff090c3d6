. /run/ibboot-fabric/lib.sh
set -e
# In the initramfs. nm-initrd-generator wrote profiles for the bond and its interfaces too.
grep -q '^interface-name=bond0$' initramfs-profiles.txt
grep -q '^eth0 .* connected ' initramfs-devices.txt
grep -q '^bond0 .* unmanaged ' initramfs-devices.txt
# Here.
wait_for 180 'nmcli -g GENERAL.STATE device show eth0 | grep -q "^100 "'
nmcli device | tee devices.txt
for netdev in bond0 ib0 ib1; do
    grep "^$netdev .* unmanaged " devices.txt
done
ls /run/NetworkManager/system-connections | tee profiles.txt
[ "$(grep -c 'bond0\|ib[01]' profiles.txt)" = 0 ]
[ "$(cat /sys/class/net/bond0/bonding/mode)" = 'active-backup 1' ]
[ "$(tr ' ' '\n' < /sys/class/net/bond0/bonding/slaves | sort | xargs)" = 'ib0 ib1' ]
[ "$(cat /sys/class/net/bond0/carrier_changes)" = "$(cat carrier_changes)" ]
talk 10.0.0.1 10.0.0.2
