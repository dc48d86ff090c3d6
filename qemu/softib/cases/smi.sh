# SPDX-License-Identifier: GPL-2.0-only
# the SMI sub-device of a card with four planes; only Linux 6.11 and 6.12 let a module have one
case $(uname -r) in
6.11.* | 6.12.*) ;;
*)
	modprobe softib smi=4 || fail "modprobe"
	check "the driver gives up" '[ ! -e /sys/class/infiniband/softib0 ]'
	knob softib0 planes 0
	echo softib.0 > /sys/bus/platform/drivers_probe
	check "and does not without planes" '[ -e /sys/class/infiniband/softib0 ]'
	return
	;;
esac
with_sm smi=4,0
sub=/sys/class/infiniband/smi0
check "a sub-device with four ports" '[ "$(ls $sub/ports)" = "1
2
3
4" ]'
check "of that HCA alone" '[ ! -e /sys/class/infiniband/smi1 ]'
same() { [ "$(cat "$sub/ports/4/$1")" = "$(port softib0 1 "$1")" ]; }
check "GUID, state and LID are the HCA's" '[ "$(cat $sub/node_guid)" = "$(cat /sys/class/infiniband/softib0/node_guid)" ] && same state && same lid && same gids/0'
check "each plane has one lane" 'grep -q "(1X QDR)" $sub/ports/1/rate'
check "InfiniBand" 'grep -q InfiniBand $sub/ports/1/link_layer'
check "no IPoIB: one interface" '[ "$(ls /sys/class/infiniband/softib0/device/net | wc -l)" = 1 ]'
check "no uverbs, as for any SMI device" '! cat /sys/class/infiniband_verbs/uverbs*/ibdev | grep -q smi0'
check "a umad for each plane" '[ "$(cat /sys/class/infiniband_mad/umad*/ibdev | grep -c smi0)" = 4 ]'
check "QP0 and no QP1: a tool that registers for the SA as well is refused" '! smpquery -C smi0 -P 2 -D nodeinfo 0 > /dev/null 2>&1'
sh $fabric cable out
check "the HCA's link is theirs" 'same state && grep -q DOWN $sub/ports/2/state'
knob softib0 present 0
check "gone with its HCA" '[ ! -e $sub ]'
knob softib0 present 1
check "back with it" '[ -e $sub/ports/4 ]'
knob softib0 planes 2
echo softib.0 > /sys/bus/platform/drivers/softib/unbind
echo softib.0 > /sys/bus/platform/drivers/softib/bind
check "two planes from the next probe on" '[ -e $sub/ports/2 ] && [ ! -e $sub/ports/3 ]'
sh $fabric down
modprobe -r ib_ipoib
modprobe -r softib || fail "modprobe -r"
