# SPDX-License-Identifier: GPL-2.0-only
# a card with 16 ports; 128 P_Keys and 16 GIDs, which the SM reads and sets block by block
# memory: 1536
ports=/sys/class/infiniband/softib0/ports
load ports=16
check "16 ports" '[ "$(ls $ports | wc -l)" = 16 ]'
check "each with a link" '[ "$(grep -l INIT $ports/*/state | wc -l)" = 16 ]'
check "each with a GUID of its own" '[ "$(cat /sys/class/infiniband/softib[01]/ports/*/gids/0 | sort -u | wc -l)" = 32 ]'
check "each with an interface" '[ "$(cat /sys/class/infiniband/softib0/device/net/*/dev_port | sort -un | wc -l)" = 16 ]'
modprobe -r softib || fail "modprobe -r"

modprobe softib ports=2 pkeys=128 gids=16 || fail "modprobe"
check "128 P_Keys, 16 GIDs" '[ "$(ls $ports/2/pkeys | wc -l)" = 128 ] && [ "$(ls $ports/2/gids | wc -l)" = 16 ]'
sh $fabric up
set -- 'Default=0x7fff,ipoib,defmember=full:ALL=full;'
for i in $(busybox seq 1 70); do set -- "$@" "P$i=$(printf '0x%04x' $((i + 0x100))):ALL=full;"; done
sh $fabric partitions "$@"
sh $fabric sm start softib1 2
wait_for 30 "port 2 ACTIVE" 'is_state softib0 2 ACTIVE'
wait_for 20 "71 partitions" '[ "$(cat $ports/2/pkeys/* | grep -cv 0x0000)" = 71 ]'
check "the last of them, in the third block" 'grep -q 0x8146 $ports/2/pkeys/*'
check "port 1 has one" '[ "$(cat $ports/1/pkeys/* | grep -cv 0x0000)" = 1 ]'
check "GUIDInfo has two blocks" 'inside smpquery -P 2 -D guidinfo 0,2 > /tmp/guids && [ "$(grep -o 0x /tmp/guids | wc -l)" -ge 16 ] && grep -q 0x0250f7000000a002 /tmp/guids'
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
for wrong in ports=17 pkeys=129 gids=0 unplugged=lost force_state=up link_layer=token-ring; do
	check "refused: $wrong" '! modprobe softib $wrong 2> /dev/null'
done
