# Bring-up stays half way, ACTIVE and without carrier, until the cable has been out.
. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 mad 'sa drop all'
fabric sm start
heard 240 'ibboot: waiting: ib0 (softib0/1): port is ACTIVE, but the interface has no carrier:.*'
say "the cable is pulled"
fabric cable out
heard 60 'ibboot: waiting: ib0 (softib0/1): no physical link: .*'
fabric knob softib0/1 mad 'sa pass'
fabric address 10.0.0.2/24
say "the cable is plugged in"
fabric cable in
