# Nobody joins a group while the first subnet manager lives.
. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 mad 'sa drop all'
fabric sm start
wait_for 60 'is_state softib0 1 ACTIVE'
fabric sm kill
fabric knob softib0/1 mad 'sa pass'
say "the subnet manager is dead"
heard 240 'ibboot:     the subnet administrator at LID 1 does not answer, .*'
fabric address 10.0.0.2/24
say "the subnet manager is back"
fabric sm start
