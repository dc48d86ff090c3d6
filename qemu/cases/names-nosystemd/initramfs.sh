# With the name of a hook of dracut that the image does not have.
cat > "$hookdir/cmdline/95-parse-cifsroot.sh" <<'HOOK'
. /run/ibboot-fabric/lib.sh
wait_for 120 '[ -e /sys/class/net/ib0 ]'
# Longer than a program needs that does not wait for udevd.
sleep 3
! ip link show dev ib0 up | grep -q ib0 || failed "ib0 is up before udevd starts"
HOOK
