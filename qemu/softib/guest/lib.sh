# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Functions for all cases.  A case is a script that /init sources; it fails by
# calling fail, and passes if it reaches its end.

fabric=/softib/fabric.sh
KERNEL_TROUBLE='WARNING: |BUG: |BUG |Oops|general protection|Call Trace|blocked for more than|soft lockup|rcu: INFO|Redzone|Poison|overrun'

say() { echo "[$(cut -d' ' -f1 /proc/uptime)] $*"; }

end() { # VERDICT
	echo "softib-case: $1"
	sync
	poweroff -f
	while :; do sleep 60; done
}

# from /init on; slow machines cause a NAPI warning of the network core, which does not count
kernel_log() { dmesg | sed -n '/Run .init/,$p'; }
trouble() { kernel_log | grep -E "$KERNEL_TROUBLE" | grep -v 'Budget exhausted'; }

fail() {
	kernel_log | tail -40
	end "FAIL $*"
}

pass() {
	[ -z "$(trouble)" ] || fail "the kernel complained: $(trouble | head -1)"
	end ok
}

# wait_for SECONDS WHAT CONDITION: wait until the condition holds, up to a deadline
wait_for() {
	end_at=$(($(cut -d. -f1 /proc/uptime) + $1))
	until eval "$3"; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $end_at ] || fail "not in $1 s: $2"
		sleep 0.05
	done
	say "$2"
}

# stays SECONDS WHAT CONDITION: the condition must hold for this time
stays() {
	end_at=$(($(cut -d. -f1 /proc/uptime) + $1))
	while [ "$(cut -d. -f1 /proc/uptime)" -lt $end_at ]; do
		eval "$3" || fail "not for $1 s: $2"
		sleep 0.1
	done
	say "$2"
}

check() { # WHAT CONDITION
	eval "$2" || fail "not so: $1"
	say "$1"
}

port() { cat "/sys/class/infiniband/$1/ports/$2/$3"; }	# HCA PORT FILE
knob() { sh $fabric knob "$@" || fail "knob $*"; }
inside() { sh $fabric exec "$@"; }

is_state() { grep -q "$3" "/sys/class/infiniband/$1/ports/$2/state"; }	# HCA PORT STATE
is_phys() { grep -q "$3" "/sys/class/infiniband/$1/ports/$2/phys_state"; }
has_carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2>/dev/null)" = 1 ]; }
pings() { ping -c 1 -W 1 "${@:-10.0.0.2}" > /dev/null; }

active='is_state softib0 1 ACTIVE'
init='is_state softib0 1 INIT'

load() { # PARAMETER...
	for module in ib_umad ib_uverbs ib_ipoib; do modprobe $module || fail "modprobe $module"; done
	modprobe softib "$@" || fail "modprobe softib $*"
}

# one HCA here, the other in the namespace of the fabric with a subnet manager
with_sm() {
	load "$@"
	sh $fabric up || fail "fabric up"
	sh $fabric sm start || fail "sm start"
	wait_for 20 "the port is ACTIVE" "$active"
}

# the same, with IPoIB at both ends: 10.0.0.1 here, 10.0.0.2 at the far end
with_ipoib() {
	with_sm "$@"
	sh $fabric address 10.0.0.2/24 || fail "far address"
	ip addr add 10.0.0.1/24 dev ib0
	ip link set ib0 up
	wait_for 20 "ib0 has carrier" 'has_carrier ib0'
	wait_for 20 "10.0.0.2 answers" pings
}

seconds() { cut -d' ' -f1 /proc/uptime; }
since() { awk -v a="$1" -v b="$(seconds)" 'BEGIN { print b - a }'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }	# A B: A < B
