# The questions get their time: without this, the end of the initramfs cuts them short.
cat > "$hookdir/pre-pivot/00-case.sh" <<'HOOK'
cp /run/ibboot/state.json /run/ibboot-test/out/state-then.json
seconds=0
until dmesg | grep -q 'ib1: DHCPv6: no name servers' || [ "$seconds" -ge 150 ]; do
    sleep 1
    seconds=$((seconds + 1))
done
HOOK
