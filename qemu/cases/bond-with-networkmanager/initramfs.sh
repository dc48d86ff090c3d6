# Before the switch: what NetworkManager there makes of the interfaces.
cat > "$hookdir/cleanup/00-case.sh" <<'END'
nmcli device > /run/ibboot-test/out/initramfs-devices.txt 2>&1
cat /run/NetworkManager/system-connections/* > /run/ibboot-test/out/initramfs-profiles.txt
cat /sys/class/net/bond0/carrier_changes > /run/ibboot-test/out/carrier_changes
END
