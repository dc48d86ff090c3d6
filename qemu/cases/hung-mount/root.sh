# systemd must visit no mount of the machine before it starts the program: the way to a mount below one that hangs
# would hold the report of why it hangs.
. /run/ibboot-fabric/lib.sh
set -e
# noac: each visit asks the server.
mount -i -t nfs4 -o addr=10.0.0.2,clientaddr=10.0.0.1,noac 10.0.0.2:/ /srv
mount -t tmpfs tmpfs /srv/mnt
ip link set ib0 down
systemctl start ibboot-check.service && exit 1
systemctl show -p Result,ExecMainStatus ibboot-check.service > unit
cat unit
grep -qx Result=exit-code unit
journalctl -b -u ibboot-check.service -o cat --no-pager > journal
cat journal
grep -F '[ipoib.up]' journal
ip link set ib0 up
wait_for 120 '[ "$(cat /sys/class/net/ib0/carrier)" = 1 ]'
systemctl start ibboot-check.service
[ -d /srv/usr ]
