# With the name of a hook of dracut that the image does not have.
cat > "$hookdir/cmdline/95-parse-cifsroot.sh" <<'HOOK'
. /run/ibboot-fabric/lib.sh
wait_for 120 "ip -6 addr show dev ib0 | grep -q 'inet6 fd00::10/128'"
mkdir -p /etc/cmdline.d
echo 'rd.net.dhcp.client-id=ib0:ff:00:00:00:01:00:03:00:20:06:07:08:09' > /etc/cmdline.d/95-cifs.conf
echo '<3>boot-test: the hook of dracut ends' > /dev/kmsg
HOOK
