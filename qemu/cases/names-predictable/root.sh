. /run/ibboot-fabric/lib.sh
set -e
ls /sys/class/net | tee names.txt
[ "$(tr '\n' ' ' < names.txt | sed 's/bonding_masters //')" = 'enp0s3 ibp129s0 ibp129s0.8001 lo ' ]
talk 10.0.0.1 10.0.0.2
talk 10.0.1.1 10.0.1.2
