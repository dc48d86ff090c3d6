# SPDX-License-Identifier: GPL-2.0-only
# the subnet manager comes late, hangs, is killed, comes back
load
sh $fabric up
ip link set ib0 up
stays 2 "no subnet manager: INIT, no carrier" "$init && ! has_carrier ib0"
sh $fabric sm start
wait_for 20 "late subnet manager: ACTIVE" "$active"
wait_for 20 "carrier" 'has_carrier ib0'
check "it answers" 'sminfo > /dev/null 2>&1'
sh $fabric sm hang
check "hung: silent" '! sminfo -t 500 > /dev/null 2>&1'
check "hung: the port stays ACTIVE" "$active"
ip link set ib0 down; ip link set ib0 up
stays 3 "hung: no carrier without its SA" "! has_carrier ib0"
sh $fabric sm resume
wait_for 40 "resumed: carrier" 'has_carrier ib0'
sh $fabric sm kill
stays 2 "killed: the port stays ACTIVE" "$active"
check "killed: silent" '! sminfo -t 500 > /dev/null 2>&1'
sh $fabric sm start
wait_for 20 "started again: it answers" 'sminfo > /dev/null 2>&1'
sh $fabric sm restart
wait_for 20 "restarted: it answers" 'sminfo > /dev/null 2>&1'
sh $fabric sm stop
check "stopped: not running" '! sh $fabric sm running 2> /dev/null'
