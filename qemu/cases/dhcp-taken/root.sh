. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.11/24 .* ib0'
ip -4 addr show dev ib0 | grep 'inet 10.0.0.10/' && exit 1
talk 10.0.0.11 10.0.0.2
