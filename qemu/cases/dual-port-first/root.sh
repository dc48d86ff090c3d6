. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/rail0/dev_port)" = 0 ]
# The address that the command line has is not the one of this boot, but for its end.
grep -q '^80:.*:02:50:f7:00:00:00:a0:01$' /sys/class/net/rail0/address
[ -z "$(grep '^80:00:0a:bc:' /sys/class/net/rail0/address)" ]
is_state softib0 2 DOWN
talk 10.0.0.1 10.0.0.2
