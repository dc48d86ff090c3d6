. /run/ibboot-fabric/lib.sh
set -e
# In the order in which udev named the interfaces.
[ "$(tr ' ' '\n' < /sys/class/net/bond0/bonding/slaves | sort | xargs)" = 'ibp129s0 ibp129s0d1' ]
[ "$(cat /sys/class/net/bond0/bonding/active_slave)" = ibp129s0d1 ]
talk 10.0.0.1 10.0.0.2
