cat > "$hookdir/cmdline/30-site.sh" <<'HOOK'
# Longer than a program needs that does not wait.
sleep 5
mkdir -p /etc/cmdline.d /etc/modprobe.d
echo 'ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.mode=connected' > /etc/cmdline.d/30-site.conf
echo 'options ib_ipoib send_queue_size=256' > /etc/modprobe.d/site-hook.conf
echo '<3>boot-test: the hook of the site ends' > /dev/kmsg
HOOK
