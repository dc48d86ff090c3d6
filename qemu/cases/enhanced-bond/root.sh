. /run/ibboot-fabric/lib.sh
set -e
bond=/sys/class/net/bond0/bonding
grep . "$bond"/* | tee bond.txt
[ "$(tr ' ' '\n' < $bond/slaves | sort | xargs)" = 'ib0 ib1' ]
[ "$(cat $bond/active_slave)" = ib0 ]
for netdev in ib0 ib1; do
    [ "$(cat /sys/class/net/$netdev/mode)" = datagram ]
    [ "$(cut -c 1-2 /sys/class/net/$netdev/address)" = 00 ]
done
[ "$(cat /sys/class/net/bond0/mtu)" = 2044 ]
talk 10.0.0.1 10.0.0.2 2016

fabric cable out softib0 1
wait_for 60 '[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = ib1 ]'
wait_for 120 'talk 10.0.0.1 10.0.0.2 2016'

fabric cable in softib0 1
wait_for 120 'ibboot check --all > back.txt'
wait_for 60 '[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = ib0 ]'
wait_for 120 'talk 10.0.0.1 10.0.0.2'
