# SPDX-License-Identifier: GPL-2.0-only
# user space may open a device, query it and read its events
with_sm ibv=1
check "ibv_devices" 'ibv_devices | grep -q softib0'
check "ibv_devinfo: PORT_ACTIVE" 'ibv_devinfo -d softib0 | grep -q "PORT_ACTIVE"'
check "ibv_devinfo: InfiniBand" 'ibv_devinfo -d softib0 | grep -q "link_layer:.*InfiniBand"'
ibv_asyncwatch -d softib0 > /tmp/events 2>&1 &
wait_for 5 "watching" 'grep -q "async event FD" /tmp/events'
sh $fabric cable out
wait_for 5 "port error is heard" 'grep -q IBV_EVENT_PORT_ERR /tmp/events'
sh $fabric cable in
wait_for 20 "port active is heard" 'grep -q IBV_EVENT_PORT_ACTIVE /tmp/events'
at=$(seconds)
knob softib0 present 0
check "removal does not wait for the watcher: $(since "$at") s" 'less "$(since "$at")" 3'
wait_for 5 "fatal event is heard" 'grep -q IBV_EVENT_DEVICE_FATAL /tmp/events'
