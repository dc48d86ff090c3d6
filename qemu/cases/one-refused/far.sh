# Without a wait for ib0 this line would never come.
. /run/ibboot-fabric/lib.sh
heard 240 'ibboot: waiting: ib0 (softib0/1): port is not ACTIVE: INIT, .*'
fabric address 10.0.0.2/24
fabric sm start
