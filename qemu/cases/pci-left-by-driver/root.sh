. /run/ibboot-fabric/lib.sh
is_state softib0 1 ACTIVE
