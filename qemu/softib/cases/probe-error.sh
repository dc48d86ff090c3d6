# SPDX-License-Identifier: GPL-2.0-only
# one card of four is slow, one is dead until its firmware comes up
driver=/sys/bus/platform/drivers/softib
modprobe ib_umad
at=$(seconds)
modprobe softib hcas=4 probe_ms=0,2000,0 probe_error=0,0,-110,0 || fail modprobe
took=$(since "$at")
check "one of four takes 2 s: $took s" '! less "$took" 2 && less "$took" 4'
check "three HCAs" '[ "$(ls /sys/class/infiniband | wc -l)" = 3 ] && [ ! -e /sys/class/infiniband/softib2 ]'
check "the dead one is on the bus, without a driver" '[ -e /sys/bus/platform/devices/softib.2 ] && [ ! -e /sys/bus/platform/devices/softib.2/driver ]'
check "the log says why" 'dmesg | grep -q "softib softib.2: initialisation failed: -110"'
check "its partner has no link" 'is_state softib3 1 DOWN'
echo softib.2 > /sys/bus/platform/drivers_probe
check "still dead" '[ ! -e /sys/class/infiniband/softib2 ]'
check "bind says so" '! echo softib.2 > $driver/bind'
knob softib2 probe_error 0
echo softib.2 > /sys/bus/platform/drivers_probe
wait_for 5 "its firmware has come up: probed again" 'is_state softib2 1 INIT && is_state softib3 1 INIT'
echo softib.2 > $driver/unbind
knob softib2 probe_ms 1500
at=$(seconds)
echo softib.2 > $driver/bind
check "a slow one from now on: $(since "$at") s" '! less "$(since "$at")" 1.5'
knob softib2 probe_error -16
knob softib2 reset 100
wait_for 10 "dead after a reset" 'dmesg | grep -q "softib.2: initialisation failed: -16"'
check "and without a driver" '[ ! -e /sys/class/infiniband/softib2 ]'
modprobe -r softib || fail "modprobe -r"
modprobe softib hcas=2 probe_error=-5 || fail modprobe
check "one value stands for all" '[ -z "$(ls /sys/class/infiniband)" ]'
