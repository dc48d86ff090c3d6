set -ex
grep -x ADMIN_STATE=configured initramfs-eth0
grep 'inet 10.0.2.15/24' initramfs-addresses
grep -x ADMIN_STATE=unmanaged initramfs-ib0
