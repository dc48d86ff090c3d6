# SPDX-License-Identifier: GPL-2.0-only
# dual-port HCAs, each port its own subnet
sh() { busybox sh "$@"; }	# fabric.sh by busybox, as some images have it
load ports=2
sh $fabric up
knob softib0/2 cable 0
sh $fabric sm start softib1 1
wait_for 20 "port 1 ACTIVE" "$active"
check "port 2 DOWN" 'is_state softib0 2 DOWN'
knob softib0/2 cable 1
wait_for 5 "port 2 INIT: no subnet manager there" 'is_state softib0 2 INIT'
sh $fabric sm start softib1 2
wait_for 20 "port 2 ACTIVE" 'is_state softib0 2 ACTIVE'
check "port 1 still ACTIVE" "$active"
check "an interface for each" '[ "$(cat /sys/class/net/ib0/dev_port /sys/class/net/ib1/dev_port | tr -d "\n")" = 01 ]'
sh $fabric address 10.0.1.2/24 softib1 2
ip addr add 10.0.1.1/24 dev ib1; ip link set ib1 up
wait_for 20 "traffic over port 2" 'has_carrier ib1 && pings 10.0.1.2'
check "PortInfo of port 2 through port 1 names the way it came" 'inside smpquery -C softib1 -P 1 -D portinfo 0,1 2 | grep -q "^LocalPort:\.*1$"'
knob softib0/1 cable 0
wait_for 5 "port 1 DOWN" 'is_state softib0 1 DOWN'
check "port 2 does not mind" 'is_state softib0 2 ACTIVE && pings 10.0.1.2'
