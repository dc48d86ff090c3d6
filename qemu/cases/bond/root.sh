. /run/ibboot-fabric/lib.sh
set -e
bond=/sys/class/net/bond0/bonding
grep . "$bond"/* | tee bond.txt
[ "$(tr ' ' '\n' < $bond/slaves | sort | xargs)" = 'ib0 ib1' ]
[ "$(cat $bond/mode)" = 'active-backup 1' ]
[ "$(cat $bond/fail_over_mac)" = 'active 1' ]
[ "$(cat $bond/miimon)" = 50 ]
[ "$(cat $bond/active_slave)" = ib0 ]
for netdev in ib0 ib1; do
    [ "$(cat /sys/class/net/$netdev/mode)" = connected ]
done
[ "$(cat /sys/class/net/bond0/mtu)" = 65520 ]
talk 10.0.0.1 10.0.0.2 60000

fabric cable out softib0 1
wait_for 60 '[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = ib1 ]'
wait_for 120 'talk 10.0.0.1 10.0.0.2 60000'
ibboot check --all > pulled.txt && exit 1
[ "$(tail -n 1 pulled.txt)" = 'WARNING: 2 of 3 links verified, required: every port that the command line names; because of port.physical_state of ib0 (softib0/1)' ]
grep -x '  ok        bond.carrier               by ib1' pulled.txt

fabric cable in softib0 1
wait_for 120 'ibboot check --all > back.txt'
wait_for 60 '[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = ib0 ]'
wait_for 120 'talk 10.0.0.1 10.0.0.2'

# What suggest writes describes this machine, whose root has none of the modules.
mount -t tmpfs none /lib/modules
ibboot suggest | tee suggest.txt
ibboot plan --cmdline "$(ibboot suggest --format line)"
ibboot check --all --cmdline "$(ibboot suggest --format line)" > suggested.txt
