. /run/ibboot-fabric/lib.sh
began=$(cut -d. -f1 /proc/uptime)
heard 240 'ibboot: waiting: ib0 (softib0/1): port is not ACTIVE: INIT, .*'
sleep 15
wait_for 30 '[ "$(cut -d. -f1 /proc/uptime)" -ge $((began + 30)) ]'
fabric address 10.0.0.2/24
say "the subnet manager starts"
fabric sm start
