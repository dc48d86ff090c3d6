set -e
sh /run/ibboot-fabric/fabric.sh knob softib2 hang_ms | grep -qx 600000
# A single look waits 5 s for the device, and tells of it.
begin=$(cut -d. -f1 /proc/uptime)
ibboot facts > facts.dead
[ "$(($(cut -d. -f1 /proc/uptime) - begin))" -lt 15 ]
grep -q '"silent_s": [45],' facts.dead
# Nothing reads the device meanwhile: the reader ended with its command, or ends with its query.
grep -q '"ifname": "softib2"' /run/ibboot/state.json
