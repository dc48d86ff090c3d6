[ -e /sys/class/net/ibp129s0 ] && [ ! -e /sys/class/net/ib0 ]
