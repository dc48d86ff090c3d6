. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev ib0 | tee addresses.txt
[ "$(grep -c 'inet ' addresses.txt)" = 1 ]
grep -q 'inet 10.0.0.30/24 .* ib0' addresses.txt
talk 10.0.0.30 10.0.0.2
