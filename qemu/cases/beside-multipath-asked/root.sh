. /run/ibboot-fabric/lib.sh
set -e
journalctl -b --no-pager | grep 'Started .*Device-Mapper Multipath Device Controller'
talk 10.0.0.1 10.0.0.2
