. /run/ibboot-fabric/lib.sh
set -e
ip -d addr
[ "$(ip -o link | grep -c 'ib0.8001@ib0')" = 1 ]
talk 10.0.1.1 10.0.1.2
