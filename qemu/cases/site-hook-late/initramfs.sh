cat > "$hookdir/cmdline/95-site.sh" <<'HOOK'
mkdir -p /etc/cmdline.d
echo 'ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected' > /etc/cmdline.d/95-site.conf
echo '<3>boot-test: the hook of the site ends' > /dev/kmsg
HOOK
