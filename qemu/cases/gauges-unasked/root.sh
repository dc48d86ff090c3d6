set -ex
gauges=/var/lib/prometheus/node-exporter
install -d -o nobody "$gauges"
install -D -m 644 -t /etc/systemd/system/ibboot-check.service.d /usr/share/doc/ibboot/monitoring/systemd/textfile.conf
[ ! -e /run/ibboot ]
systemctl daemon-reload
# Unknown is a failure of the unit.
systemctl start ibboot-check.service && exit 1
systemctl show -p Result,ExecMainStatus ibboot-check.service
[ "$(systemctl show -p ExecMainStatus --value ibboot-check.service)" = 1 ]
grep -x 'ibboot_status 3' "$gauges/ibboot.prom"
