cat > "$hookdir/cmdline/95-site.sh" <<'HOOK'
mkdir -p /etc/cmdline.d
echo 'rd.ib=0' > /etc/cmdline.d/95-site.conf
echo '<3>boot-test: the hook of the site ends' > /dev/kmsg
HOOK
cat > "$hookdir/cleanup/99-case.sh" <<'HOOK'
{
    ls -d /run/ibboot /etc/systemd/network/*ibboot* /run/NetworkManager/conf.d/* /run/udev/rules.d/*ibboot*
    ip -4 -o addr show dev ib0
} > /run/ibboot-test/out/left.txt 2> /dev/null
HOOK
