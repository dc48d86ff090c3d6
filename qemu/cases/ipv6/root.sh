. /run/ibboot-fabric/lib.sh
set -e
ip -6 addr show dev ib0
ip -6 addr show dev ib0 | grep -A 1 'inet6 fd00:1::55/128' | grep -q 'valid_lft forever'
check 0 'lease6.present             fd00:1::55/128 of fe80::' 'fd00::1/64' 'fd00:1::55/128' 'fd00:1::250:f700:0:a001/64'
ping -c 3 -i 0.2 -W 10 fd00::2
ping -c 3 -i 0.2 -W 10 -I fd00:1::250:f700:0:a001 fd00:1::2
ping -c 3 -i 0.2 -W 10 -I fd00:1::55 fd00:1::2
