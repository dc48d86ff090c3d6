. /run/ibboot-fabric/lib.sh
set -e
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
talk 10.0.0.1 10.0.0.2 60000
