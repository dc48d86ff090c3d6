# SPDX-License-Identifier: GPL-2.0-only
# faults and other kinds of HCAs on PCI functions
# pci: 4
monitor() { echo "softib-monitor: $*"; }
first=0000:01:00.0 third=0000:03:00.0
dir=/sys/class/infiniband/softib0/ports/1
hung() { at=$(seconds); cat $dir/state > /dev/null; ! less "$(since "$at")" 2; }
quick() { at=$(seconds); cat $dir/state > /dev/null; less "$(since "$at")" 2; }
load pci=1 hcas=4 warm=1 train_ms=3000 link_layer=infiniband,infiniband,ethernet
check "warm: ACTIVE at registration" "$active && is_phys softib0 1 LinkUp"
check "no event has told it" '! dmesg | grep -q "softib0: port 1: ACTIVE"'
check "Ethernet on a function" 'grep -q Ethernet /sys/class/infiniband/softib2/ports/1/link_layer && [ -n "$(ls /sys/bus/pci/devices/$third/net)" ]'
knob softib0 hang_ms 60000
cat $dir/state > /dev/null &
sleep 1
at=$(seconds)
knob softib0 present 0
check "a pull ends a hang" 'less "$(since "$at")" 10 && [ ! -e /sys/class/infiniband/softib0 ]'
knob softib0 hang_ms 0
knob softib0 present 1
wait_for 20 "plugged in" '[ -e $dir/state ]'
knob softib0 hang_ms 3000
check "it hangs again" hung
knob softib0 hang_ms 0
check "and no longer" quick
monitor "pcie_aer_inject_error port0 DLP"
wait_for 30 "recovered from a fatal error" 'dmesg | grep -q "device recovery successful" && [ -e $dir/state ]'
knob softib0 hang_ms 3000
check "it hangs after that too" hung
knob softib0 hang_ms 0
knob softib0 probe_error -5
echo $first > /sys/bus/pci/drivers/softib/unbind
echo $first > /sys/bus/pci/drivers/softib/bind 2> /dev/null
check "probing fails" '[ ! -e /sys/class/infiniband/softib0 ]'
knob softib0 probe_error 0
echo $first > /sys/bus/pci/drivers_probe
check "and works" '[ -e $dir/state ]'
modprobe -r ib_ipoib
knob softib0 hang_ms 60000
cat $dir/state > /dev/null &
sleep 1
at=$(seconds)
modprobe -r softib || fail "modprobe -r"
check "a module that goes ends its hangs" 'less "$(since "$at")" 20'
