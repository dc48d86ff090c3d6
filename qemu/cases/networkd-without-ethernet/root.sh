set -ex
grep '^10.0.0.2:/ / nfs4 ' /proc/mounts
journalctl -b --no-pager -u systemd-networkd-wait-online.service
systemctl list-dependencies --no-pager systemd-networkd-wait-online.service || :
