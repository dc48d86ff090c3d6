# SPDX-License-Identifier: GPL-2.0-only
# HCAs on PCI functions: names, binding, hot unplug, error recovery
# pci: 4
monitor() { echo "softib-monitor: $*"; }
first=0000:01:00.0 third=0000:03:00.0
pci=/sys/bus/pci
for module in ib_umad ib_uverbs ib_ipoib; do modprobe $module || fail "modprobe $module"; done
check "no HCA yet" '[ -z "$(ls /sys/class/infiniband 2> /dev/null)" ]'
mkdir -p /etc/modprobe.d
echo 'options softib pci=1 hcas=4' > /etc/modprobe.d/softib.conf
modprobe "$(cat $pci/devices/$first/modalias)" || fail "the modalias leads nowhere"
wait_for 10 "four HCAs" '[ "$(ls /sys/class/infiniband | wc -l)" = 4 ]'
check "on PCI functions, in the order of the bus" \
	'[ "$(basename "$(readlink -f /sys/class/infiniband/softib2/device)")" = $third ]'
check "the driver is a PCI driver" '[ "$(basename "$(readlink -f $pci/devices/$first/driver)")" = softib ]'
check "the class is that of an InfiniBand HCA" '[ "$(cat $pci/devices/$first/class)" = 0x020700 ]'
check "the interface is on it" '[ "$(sh $fabric netdev-here softib2 1)" = "$(ls $pci/devices/$third/net)" ]'
check "no platform device" '[ -z "$(ls -d /sys/bus/platform/devices/softib.* 2> /dev/null)" ]'
sh $fabric up softib1 softib3
sh $fabric sm start
wait_for 20 "0 and 1 are cabled: ACTIVE" "$active"
sh $fabric address 10.0.0.2/24
ip addr add 10.0.0.1/24 dev ib0; ip link set ib0 up
wait_for 20 "traffic" 'has_carrier ib0 && pings'

echo $third > $pci/drivers/softib/unbind
check "unbound" '[ ! -e /sys/class/infiniband/softib2 ]'
echo $third > $pci/drivers_probe
check "probed: the same HCA" '[ "$(cat /sys/class/infiniband/softib2/node_guid)" = 0250:f700:0000:a020 ]'
echo $third > $pci/drivers/softib/unbind
echo $third > $pci/drivers/softib/bind
check "bound again" '[ -e /sys/class/infiniband/softib2 ]'

ping -i 0.01 10.0.0.2 > /dev/null 2>&1 &
knob softib0 present 0
check "pulled under traffic: no function" '[ ! -e $pci/devices/$first ] && [ ! -e /sys/class/infiniband/softib0 ]'
check "the knob knows" '[ "$(knob softib0 present)" = 0 ] && [ -z "$(knob softib0 device)" ]'
knob softib0 present 1
check "plugged in again" '[ -e $pci/devices/$first ] && [ "$(knob softib0 device)" = $first ]'
wait_for 20 "ACTIVE" "$active"
knob softib0 reset 500
wait_for 20 "a reset: back and ACTIVE" "$active"

monitor "pcie_aer_inject_error port0 DLP"
wait_for 20 "a fatal error on the bus reaches the driver" 'kernel_log | grep -q "$first: softib0: PCI error"'
wait_for 30 "recovered" 'kernel_log | grep -q "device recovery successful"'
wait_for 20 "the HCA is back: ACTIVE" "$active"

monitor "device_del hca2"
wait_for 30 "hot unplug: no function, no HCA" '[ ! -e $pci/devices/$third ] && [ ! -e /sys/class/infiniband/softib2 ]'
check "by the slot itself" 'kernel_log | grep -q "pciehp: Slot(3)"'
wait_for 10 "the slot has no power" '[ "$(cat $pci/slots/3/power)" = 0 ]'
sleep 3		# the kernel's second without power, and QEMU has let go of the function
monitor "device_add pci-testdev,id=hca2,bus=port2"
wait_for 30 "plugged in" '[ -e /sys/class/infiniband/softib2 ]'
check "the same HCA" '[ "$(cat /sys/class/infiniband/softib2/node_guid)" = 0250:f700:0000:a020 ]'
check "the class again" '[ "$(cat $pci/devices/$third/class)" = 0x020700 ]'
sh $fabric down
modprobe -r softib || fail "modprobe -r"
check "no HCA is left, the functions are" '[ -z "$(ls /sys/class/infiniband)" ] && [ -e $pci/devices/$first ]'
modprobe softib pci=1 hcas=2 || fail "modprobe"
check "more functions than HCAs: the rest stays unbound" \
	'[ "$(ls /sys/class/infiniband | wc -l)" = 2 ] && [ ! -e $pci/devices/$third/driver ]'
modprobe -r softib || fail "modprobe -r"
