set -e
ibboot check --all
ibboot check --all | grep -q "^  ok        ipoib.mode                 connected\$"
[ "$(ibboot check --format json | grep -c '"name": "softib[0-9]/1"')" = 1 ]
ibboot check --format json | grep -q '"name": "softib2/1"'
grep -q INIT /sys/class/infiniband/softib0/ports/1/state
