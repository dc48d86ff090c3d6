# Before the switch: what systemd-networkd there makes of the interfaces, and how often the carrier changed.
cat > "$hookdir/cleanup/00-case.sh" <<'END'
for netdev in eth0 ib0; do
    cp "/run/systemd/netif/links/$(cat "/sys/class/net/$netdev/ifindex")" "/run/ibboot-test/out/initramfs-$netdev"
done
ls /run/systemd/network > /run/ibboot-test/out/initramfs-networks
cat /sys/class/net/ib0/carrier_changes > /run/ibboot-test/out/carrier_changes
END
