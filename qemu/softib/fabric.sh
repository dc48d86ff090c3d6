#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The far end of softib's cables: a network namespace with the odd HCAs, opensm
# and servers.  The machine under test keeps the even HCAs and sees a remote
# subnet manager.  For an initramfs and for a real root.
#
#   fabric.sh up [HCA...]                     namespace, HCAs moved into it (softib1)
#   fabric.sh up here                         no namespace: block storage targets support only
#                                             the initial one; routes over the cable
#   fabric.sh down                            SMs ended, namespace gone
#   fabric.sh sm VERB [HCA [PORT]]            start stop kill hang resume restart running
#   fabric.sh partitions [LINE...]            write partitions.conf; a running SM reads it
#   fabric.sh address ADDR/LEN [HCA [PORT [P_KEY]]]  far IPoIB interface (or child): up, addressed
#   fabric.sh netdev [HCA [PORT]]             print the name of the far IPoIB interface
#   fabric.sh cable in|out [HCA [PORT]]       at the near end (softib0 1)
#   fabric.sh knob HCA[/PORT] NAME [VALUE]    read or write a knob
#   fabric.sh exec COMMAND...                 run a command in the namespace
#
# FABRIC_SM_OPTIONS: more options for opensm.  FABRIC_PROGRAMS: a folder of programs that
# the system does not have.  Exit 0, 1 failed, 64 usage.

NS=fabric
RUN=/run/fabric
KNOBS=/sys/kernel/debug/softib
SM_STOP_SECONDS=10
NETDEV_SECONDS=20

die() { echo "fabric: $1" >&2; exit "${2:-1}"; }
usage() { die "usage: up down sm partitions address netdev cable knob exec; see the head of $0" 64; }

# busybox prefers its own ip to iproute2's, and its own does not support RDMA
find_program() {
	for dir in /usr/sbin /sbin /usr/bin /bin ${FABRIC_PROGRAMS:-}; do
		[ -x "$dir/$1" ] && { echo "$dir/$1"; return; }
	done
	die "$1: not in this image"
}
ip() { "$IP" "$@"; }
IP=$(find_program ip) || exit 1

if [ -e $RUN/here ]; then
	inside() { "$@"; }
	far_ip() { ip "$@"; }
else
	inside() { ip netns exec $NS "$@"; }
	far_ip() { ip -n $NS "$@"; }
fi

# until SECONDS COMMAND...: wait until the command succeeds, up to a deadline
until_() {
	end=$(($(cut -d. -f1 /proc/uptime) + $1)); shift
	while ! "$@"; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ] || return 1
		sleep 0.1
	done
}

up() {
	if [ "${1:-}" = here ]; then
		mkdir -p $RUN
		: > $RUN/here
		return
	fi
	rdma=$(find_program rdma) || exit 1
	mkdir -p $RUN /run/netns
	"$rdma" system set netns exclusive || die "rdma: no exclusive network namespaces"
	[ -e /run/netns/$NS ] || ip netns add $NS || die "no namespace"
	ip -n $NS link set lo up
	for hca in "${@:-softib1}"; do
		"$rdma" dev set "$hca" netns $NS || die "$hca: cannot be moved to $NS"
	done
}

down() {
	for pid in "$RUN"/*.pid; do
		[ -e "$pid" ] && end_sm "$pid"
	done
	[ -e $RUN/here ] || ip netns del $NS
	rm -rf $RUN
}

guid() { # HCA PORT: port GUID in the form for opensm
	gid=$(inside cat "/sys/class/infiniband/$1/ports/$2/gids/0") || die "$1: not in $NS"
	echo "$gid" | sed 's/.*:\(....\):\(....\):\(....\):\(....\)$/0x\1\2\3\4/'
}

alive() { [ -e "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
gone() { ! alive "$1"; }

end_sm() { # PIDFILE
	alive "$1" && kill -CONT "$(cat "$1")" && kill "$(cat "$1")"
	until_ $SM_STOP_SECONDS gone "$1" || kill -KILL "$(cat "$1")"
	rm -f "$1"
}

start_sm() { # HCA PORT PIDFILE
	alive "$3" && die "$1 $2: its subnet manager runs already"
	opensm=$(find_program opensm) || exit 1
	guid=$(guid "$1" "$2") || exit 1
	state=$RUN/$1-$2
	mkdir -p "$state"
	# -s 1: with two HCAs and no switch no device sends a trap
	set -- "$opensm" -g "$guid" -s 1 -f "$state/opensm.log" -P $RUN/partitions.conf
	[ -e $RUN/here ] || set -- "$IP" netns exec $NS "$@"
	(exec env OSM_CACHE_DIR="$state" OSM_TMP_DIR="$state" "$@" ${FABRIC_SM_OPTIONS:-} \
		 < /dev/null > "$state/opensm.out" 2>&1) &
	echo $! > "$state.pid"
}

sm() { # VERB HCA PORT
	pid=$RUN/$2-$3.pid
	case $1 in
	start) start_sm "$2" "$3" "$pid"; return ;;
	restart) [ -e "$pid" ] && end_sm "$pid"; start_sm "$2" "$3" "$pid"; return ;;
	esac
	[ -e "$pid" ] || die "$2 $3: no subnet manager was started"
	case $1 in
	stop) end_sm "$pid" ;;
	kill) kill -KILL "$(cat "$pid")"; until_ $SM_STOP_SECONDS gone "$pid"; rm -f "$pid" ;;
	hang) kill -STOP "$(cat "$pid")" ;;
	resume) kill -CONT "$(cat "$pid")" ;;
	running) alive "$pid" ;;
	*) usage ;;
	esac
}

partitions() {
	mkdir -p $RUN
	for line in "$@"; do echo "$line"; done > $RUN/partitions.conf
	for pid in "$RUN"/*.pid; do
		[ -e "$pid" ] && kill -HUP "$(cat "$pid")"
	done
	return 0
}

# The parent interface of a port, found by its device because names change.
netdev_here() { # HCA PORT
	parent=$(knob "$1" device) || return 1
	for net in /sys/class/net/*; do
		[ -e "$net/device" ] || continue
		[ -e "$net/parent" ] && continue
		device=$(readlink -f "$net/device")
		[ "${device##*/}" = "$parent" ] || continue
		[ "$(cat "$net/dev_port")" = $(($2 - 1)) ] && { echo "${net##*/}"; return 0; }
	done
	return 1
}

# udev may rename the interface between the look and the move.
moved() { # HCA PORT: sets name
	name=$(netdev_here "$@") || return 1
	[ -e $RUN/here ] || ip link set "$name" netns $NS 2> /dev/null
}

netdev() { # HCA PORT: move the interface into the namespace and print its name
	inside sh "$0" netdev-here "$@" && return
	until_ $NETDEV_SECONDS eval "netdev_here $1 $2 > /dev/null" || die "$1 $2: no IPoIB interface"
	until_ $NETDEV_SECONDS moved "$@" || die "$1 $2: $name cannot be moved to $NS"
	echo "$name"
}

# The kernel creates a child in the initial namespace, wherever its parent is.
child() { # PARENT P_KEY: print the name of the child
	name=$1.$(echo "$2" | sed 's/^0x//')
	inside sh -c "echo $2 > /sys/class/net/$1/create_child" || die "$1: no child $2"
	[ -e $RUN/here ] || ip link set "$name" netns $NS || die "$name: cannot be moved to $NS"
	echo "$name"
}

# Both addresses are in one namespace, where packets to a local address never leave the
# node. So packets to ADDR use the routes of the other interfaces, and packets from ADDR
# leave through NAME.  The same holds for rdma_cm, which looks up the path back.
over_the_cable() { # ADDR NAME
	for dir in all "$2"; do
		echo 1 > "/proc/sys/net/ipv4/conf/$dir/accept_local"
	done
	ip route add default dev "$2" table 101
	ip rule add pref 5 iif lo from "$1" lookup 101
	ip rule add pref 6 oif "$2" lookup 101
	ip rule add pref 7 iif lo to "$1" lookup main
	ip rule add pref 20 lookup local
	ip rule del pref 0
}

address() { # ADDR/LEN HCA PORT [P_KEY]
	name=$(netdev "$2" "$3") || exit 1
	if [ -n "${4:-}" ]; then name=$(child "$name" "$4") || exit 1; fi
	far_ip addr add "$1" dev "$name" && far_ip link set "$name" up || exit 1
	[ ! -e $RUN/here ] || over_the_cable "${1%/*}" "$name"
}

knob() { # HCA[/PORT] NAME [VALUE]
	[ -d $KNOBS ] || mount -t debugfs debugfs /sys/kernel/debug || die "no debugfs"
	file=$KNOBS/$1/$2
	[ -e "$file" ] || die "$1: no knob $2"
	if [ $# -lt 3 ]; then cat "$file"; else echo "$3" > "$file"; fi
}

verb=${1:-}
[ $# -gt 0 ] && shift
case $verb in
up) up "$@" ;;
down) down ;;
sm) sm "${1:-}" "${2:-softib1}" "${3:-1}" ;;
partitions) partitions "$@" ;;
address) [ $# -gt 0 ] || usage; address "$1" "${2:-softib1}" "${3:-1}" "${4:-}" ;;
netdev) netdev "${1:-softib1}" "${2:-1}" ;;
netdev-here) netdev_here "$@" ;;
cable)
	case ${1:-} in in) plugged=1 ;; out) plugged=0 ;; *) usage ;; esac
	knob "${2:-softib0}/${3:-1}" cable $plugged ;;
knob) [ $# -ge 2 ] || usage; knob "$@" ;;
exec) [ $# -gt 0 ] || usage; inside "$@" ;;
*) usage ;;
esac
