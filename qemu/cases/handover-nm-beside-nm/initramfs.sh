cat > "$hookdir/cleanup/00-case.sh" <<'END'
nmcli device > /run/ibboot-test/out/initramfs-devices.txt 2>&1
END
