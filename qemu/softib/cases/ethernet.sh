# SPDX-License-Identifier: GPL-2.0-only
# a management card whose link layer is Ethernet beside an InfiniBand one
load hcas=4 ports=2 link_layer=infiniband,infiniband,ethernet
eth=/sys/class/infiniband/softib2
check "Ethernet" 'grep -q Ethernet $eth/ports/1/link_layer && grep -q InfiniBand /sys/class/infiniband/softib0/ports/1/link_layer'
check "two interfaces" '[ "$(cat $eth/device/net/*/dev_port | tr -d "\n")" = 01 ]'
name=$(basename "$(dirname "$(grep -l 0 $eth/device/net/*/dev_port | head -1)")")
check "of Ethernet's type, no IPoIB" '[ "$(cat $eth/device/net/*/type | sort -u)" = 1 ]'
check "$name has the port's address" '[ "$(cat "/sys/class/net/$name/address")" = 02:50:f7:00:a0:21 ]'
check "DOWN, Disabled" 'is_state softib2 1 DOWN && is_phys softib2 1 Disabled'
check "the interface of its GIDs" '[ "$(cat $eth/ports/1/gid_attrs/ndevs/0)" = "$name" ]'
ip link set "$name" up
wait_for 5 "interface up: ACTIVE" 'is_state softib2 1 ACTIVE && has_carrier "$name"'
check "port 2 is not" 'is_state softib2 2 DOWN'
ip addr add 10.9.0.1/24 dev "$name"
wait_for 5 "a GID for its address" 'grep -q 0000:ffff:0a09:0001 $eth/ports/1/gids/*'
sh $fabric cable out softib3 1
wait_for 5 "cable out: DOWN, no carrier" 'is_state softib2 1 DOWN && ! has_carrier "$name"'
sh $fabric cable in softib3 1
wait_for 5 "back" 'is_state softib2 1 ACTIVE && has_carrier "$name"'
ip link set "$name" down
wait_for 5 "interface down: DOWN" 'is_state softib2 1 DOWN'
ip link set "$name" up
knob softib2 present 0
check "interfaces go with the card" '[ ! -e "/sys/class/net/$name" ] && [ ! -e $eth ]'
knob softib2 present 1
check "and come with it" '[ -e $eth/ports/2 ]'
knob softib3 hang_ms 500
at=$(seconds)
cat /sys/class/infiniband/softib3/ports/1/state > /dev/null
check "its firmware may hang as well: $(since "$at") s" '! less "$(since "$at")" 0.5'
sh $fabric up
sh $fabric sm start
wait_for 20 "the InfiniBand card beside it: ACTIVE" "$active"
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
check "no interface is left" '! grep -q 02:50:f7 /sys/class/net/*/address'
