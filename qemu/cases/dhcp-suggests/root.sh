. /run/ibboot-fabric/lib.sh
set -e
ip route | grep -q '^default via 10.0.0.2 dev ib0'
[ "$(cat /sys/class/net/ib0/mtu)" = 2044 ]
[ "$(cat /proc/sys/kernel/hostname)" != 1.2.3.4 ]
ibboot check --all > /run/said || [ $? = 1 ]
cat /run/said
grep -q 'WARNING   ipoib.mtu .*found 2044, 65520 suggested by 10.0.0.2' /run/said
grep -q 'WARNING   route.present' /run/said
grep -q 'expected 10.7.0.0/16 via 10.0.0.255, suggested by 10.0.0.2' /run/said
talk 10.0.0.10 10.0.0.2
