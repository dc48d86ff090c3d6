# SPDX-License-Identifier: GPL-2.0-only
# a card with 16 ports; 128 P_Keys and 16 GIDs, which the SM sets block by block
# memory: 1536
load ports=16 pkeys=128 gids=16
ports=/sys/class/infiniband/softib0/ports
check "16 ports" '[ "$(ls $ports | wc -l)" = 16 ]'
check "each with a link" '[ "$(grep -l INIT $ports/*/state | wc -l)" = 16 ]'
check "each with a GUID of its own" '[ "$(cat /sys/class/infiniband/softib[01]/ports/*/gids/0 | sort -u | wc -l)" = 32 ]'
check "each with an interface" '[ "$(cat /sys/class/infiniband/softib0/device/net/*/dev_port | sort -un | wc -l)" = 16 ]'
check "128 P_Keys, 16 GIDs" '[ "$(ls $ports/1/pkeys | wc -l)" = 128 ] && [ "$(ls $ports/1/gids | wc -l)" = 16 ]'
sh $fabric up
lines=
for i in $(busybox seq 1 70); do lines="$lines|P$i=$(printf '0x%04x' $((i + 0x100))):ALL=full;"; done
old_ifs=$IFS; IFS='|'
# shellcheck disable=SC2086
sh $fabric partitions 'Default=0x7fff,ipoib,defmember=full:ALL=full;' $lines
IFS=$old_ifs
sh $fabric sm start softib1 16
wait_for 30 "port 16 ACTIVE" 'is_state softib0 16 ACTIVE'
wait_for 20 "71 partitions" '[ "$(cat $ports/16/pkeys/* | grep -cv 0x0000)" = 71 ]'
check "the last of them" 'grep -q 0x8146 $ports/16/pkeys/*'
check "port 1 has one" '[ "$(cat $ports/1/pkeys/* | grep -cv 0x0000)" = 1 ]'
check "GUIDInfo, second block" 'inside smpquery -P 16 -D guids 0,16 16 > /tmp/guids 2>&1 && grep -q 0x0250f7000000b000 /tmp/guids'
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
for wrong in ports=17 pkeys=129 gids=0 unplugged=lost force_state=up link_layer=token-ring; do
	check "refused: $wrong" '! modprobe softib $wrong 2> /dev/null'
done
