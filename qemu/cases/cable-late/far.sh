. /run/ibboot-fabric/lib.sh
fabric cable in softib1
fabric sm start
wait_for 240 "said 'ibboot: waiting: ib0 (softib0/1): no physical link: .*'"
fabric address 10.0.0.2/24
say "the cable is plugged in"
fabric cable in
