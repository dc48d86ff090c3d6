. /run/ibboot-fabric/lib.sh
set -e
ip -6 addr show dev ib0 | tee addresses.txt
grep -q 'inet6 fd00::30/128' addresses.txt
[ "$(grep -c 'inet6 fd00::' addresses.txt)" = 1 ]
ping -c 3 -i 0.2 -W 10 -I fd00::30 fd00::2
