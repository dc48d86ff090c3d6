# SPDX-License-Identifier: GPL-2.0-only
# mode flips, interfaces down and up, cable pulls, all under traffic; removal and
# reload between the rounds; freed memory is poisoned, allocations are counted
# memory: 1024
# limit: 900
# append: slub_debug=UFZP page_poison=1
round() {
	sh $fabric up || fail "fabric up"
	sh $fabric sm start || fail "sm start"
	wait_for 20 "round $1: ACTIVE" "$active"
	sh $fabric address 10.0.0.2/24 || fail "far address"
	ip addr add 10.0.0.1/24 dev ib0
	ip link set ib0 up
	wait_for 20 "round $1: traffic" 'has_carrier ib0 && pings'
	inside iperf3 -s > /dev/null 2>&1 &
	server=$!
	sleep 0.5
	iperf3 -c 10.0.0.2 -t 1000 -b 200M > /dev/null 2>&1 &
	client=$!
	for cycle in 1 2 3 4; do
		mode=connected
		[ $((cycle % 2)) = 0 ] && mode=datagram
		echo $mode > /sys/class/net/ib0/mode
		sleep 0.3
		inside sh -c "echo $mode > /sys/class/net/ib1/mode"
		sleep 0.5
		ip link set ib0 down; sleep 0.2; ip link set ib0 up
		inside ip link set ib1 down; sleep 0.2; inside ip link set ib1 up
		sh $fabric cable out; sleep 0.$cycle; sh $fabric cable in
		wait_for 40 "round $1, cycle $cycle ($mode): traffic" "$active && has_carrier ib0 && pings"
	done
	kill $client $server 2> /dev/null
	wait $client $server 2> /dev/null
	pkill iperf3
}

# unfreed allocations of softib: the first frame outside the allocator
held() {
	cat /sys/kernel/debug/slab/*/alloc_traces 2> /dev/null | awk '
		/^ *[0-9]+ / { count = $1; open = 1; next }
		open && /^\t* *(__)?k[vz]?m(alloc|em)/ { next }
		open { open = 0; if (/\[softib\]/) print count, $1 }'
}

load
for i in 1 2 3; do
	round $i
	# one round removes the far end first: then the last messages of the near end get no answer
	if [ $i = 2 ]; then knob softib1 present 0; fi
	knob softib0 present 0
	sh $fabric down
	if [ $i != 2 ]; then knob softib1 present 0; fi
	check "round $i: no memory of softib's is left: $(held | head -3)" '[ -z "$(held)" ]'
	check "round $i: no queue pair, no memory region is left" '[ -z "$(rdma res show)" ]'
	modprobe -r softib || fail "modprobe -r softib"
	modprobe softib || fail "modprobe softib"
done
say "$(free -m | sed -n 2p)"
