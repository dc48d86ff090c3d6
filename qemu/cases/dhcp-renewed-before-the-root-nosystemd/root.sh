. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.55/24 .* ib0'
talk 10.0.0.55 10.0.0.2
