. /run/ibboot-fabric/lib.sh
fabric cable in softib1
fabric sm start
heard 240 'ibboot: waiting: ib0 (softib0/1): no physical link: .*'
fabric address 10.0.0.2/24
say "the cable is plugged in"
fabric cable in
