. /run/ibboot-fabric/lib.sh
set -e
ip -6 addr show dev ib0
check 0 'fd00::1/64' 'fd00:1::250:f700:0:a001/64'
ping -c 3 -i 0.2 -W 10 fd00::2
ping -c 3 -i 0.2 -W 10 -I fd00:1::250:f700:0:a001 fd00:1::2
