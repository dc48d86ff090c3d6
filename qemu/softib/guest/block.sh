# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Block storage targets use the initial network namespace only, so both HCAs stay
# in it.  Policy routing makes 10.0.0.1 on ib0 and 10.0.0.2 on ib1 reach each
# other over the cable; the local table would loop the packets back.

hardware_address() { ip -o link show "$1" | sed -n 's#.*link/infiniband \([^ ]*\).*#\1#p'; }

block_fabric() {
	load
	modprobe rdma_cm; modprobe configfs
	mount -t configfs configfs /sys/kernel/config
	ip link set lo up
	OSM_CACHE_DIR=/run OSM_TMP_DIR=/run opensm -B -s 1 -g 0x0250f7000000a011 -f /run/opensm.log > /dev/null
	wait_for 20 ACTIVE "$active"
	ip addr add 10.0.0.1/32 dev ib0
	ip addr add 10.0.0.2/32 dev ib1
	ip link set ib0 up
	ip link set ib1 up
	wait_for 20 carrier 'has_carrier ib0 && has_carrier ib1'
	ip neigh add 10.0.0.2 lladdr "$(hardware_address ib1)" dev ib0 nud permanent
	ip neigh add 10.0.0.1 lladdr "$(hardware_address ib0)" dev ib1 nud permanent
	ip route add 10.0.0.2 dev ib0 src 10.0.0.1 table 100
	ip route add 10.0.0.1 dev ib1 src 10.0.0.2 table 101
	ip rule add pref 5 iif lo to 10.0.0.2 lookup 100	# connections to the target
	ip rule add pref 6 oif ib1 to 10.0.0.1 lookup 101	# rdma_cm's check of the path back
	ip rule add pref 7 oif ib0 to 10.0.0.2 lookup 100
	ip rule add pref 20 lookup local
	ip rule del pref 0
}

# written, dropped from the caches, read, compared
block_check() { # DEVICE MIB
	. /softib/nfs.sh
	make_data /tmp/data "$2"
	dd if=/tmp/data of="$1" bs=1M conv=fsync 2> /dev/null || fail "write to $1"
	echo 3 > /proc/sys/vm/drop_caches
	dd if="$1" of=/tmp/back bs=1M count="$2" 2> /dev/null || fail "read from $1"
	check "$2 MiB came back whole" 'cmp /tmp/data /tmp/back'
	check "over the cable, by RDMA" "[ $(op softib1 write_bytes) -ge $(($2 * 1048576)) ]"
	rm /tmp/data /tmp/back
}
