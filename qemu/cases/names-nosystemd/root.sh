set -e
ls /sys/class/net | tee names.txt
[ -e /sys/class/net/ibp129s0 ]
[ ! -e /sys/class/net/ib0 ]
journalctl -b | grep 'cannot rename' && exit 1
true
