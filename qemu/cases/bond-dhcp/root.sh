. /run/ibboot-fabric/lib.sh
set -e
active() { cat /sys/class/net/bond0/bonding/active_slave; }
address() { ip -4 -o addr show dev bond0 | sed 's/.* inet \([0-9./]*\) .*/\1/'; }
[ "$(active)" = ib1 ]
near=$(address)
talk "${near%/*}" 10.0.0.2

# A minute until it is renewed, which the client sleeps through: its sockets are those from before the failover.
systemctl stop ibboot-lease
requested=$(sed -n 's/.*"requested_ns": \([0-9]*\)[0-9]\{9\},.*/\1/p' /run/ibboot/state.json)
renew=$(($(cut -d. -f1 /proc/uptime) - requested + 60))
sed -i "s/\"renew_s\": 1800/\"renew_s\": $renew/" /run/ibboot/lease/leases.json
grep -q "\"renew_s\": $renew," /run/ibboot/lease/leases.json
systemctl start ibboot-lease
# The first run of the unit logged the same line.
pid=$(systemctl show --property MainPID --value ibboot-lease)
wait_for 60 "journalctl _PID=$pid | grep -q 'bond0: $near of 10.0.0.2 is kept, for 3600 s'"
systemctl kill -s STOP ibboot-lease
journalctl -u ibboot-lease | grep renewed && exit 1

fabric cable out softib0 2
wait_for 60 '[ "$(active)" = ib0 ]'
wait_for 120 'talk "${near%/*}" 10.0.0.2'
ibboot check --all > pulled.txt && exit 1
cat pulled.txt
[ "$(tail -n 1 pulled.txt)" = 'WARNING: 2 of 3 links verified, required: every port that the command line names; because of port.physical_state of ib1 (softib0/2)' ]
grep -x '  ok        bond.carrier               by ib0' pulled.txt
grep -x "  ok        lease.present              $near of 10.0.0.2, for 3600 s" pulled.txt
systemctl kill -s CONT ibboot-lease
wait_for 120 "journalctl -u ibboot-lease | grep -q 'bond0: $near renewed by 10.0.0.2, for 3600 s'"
[ "$(address)" = "$near" ]

fabric cable in softib0 2
wait_for 120 'ibboot check --all > back.txt'
talk "${near%/*}" 10.0.0.2
