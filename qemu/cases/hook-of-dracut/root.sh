set -e
[ "$(cat /sys/class/net/ib0/mode)" = connected ]
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.1/24 .* ib0'
