# Before the switch: how often the carrier changed.
cat > "$hookdir/cleanup/00-case.sh" <<'END'
cat /sys/class/net/ib0/carrier_changes > /run/ibboot-test/out/carrier_changes
END
