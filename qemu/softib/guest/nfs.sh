# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# An NFS server in the fabric's namespace: version 4 over RDMA only.

# The exports of a tmpfs.  The nfsd file system belongs to the namespace of the
# process that mounts it, so everything runs inside.
nfs_server() {
	modprobe nfsd || fail "modprobe nfsd"
	modprobe rpcrdma || fail "modprobe rpcrdma"
	mkdir -p /export /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld
	mount -t tmpfs -o size=200m export /export
	echo hello > /export/hello
	echo '/export *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)' > /etc/exports
	: > /var/lib/nfs/etab
	: > /var/lib/nfs/rmtab
	nfs_threads 4
}

# Each "exec" mounts the file systems again; the daemons keep running after a stop.
nfs_threads() { # COUNT: 0 stops the server
	inside sh -c '
		mount -t nfsd nfsd /proc/fs/nfsd && cd /proc/fs/nfsd || exit 1
		[ '"$1"' = 0 ] && { echo 0 > threads; exit; }
		if [ ! -e /run/nfs-daemons ]; then
			: > /run/nfs-daemons
			mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
			nfsdcld		# without nfsdcld: a grace period of at least 10 s
			rpc.mountd -N 2 -N 3 || exit 1
		fi
		echo 10 > nfsv4gracetime
		echo 10 > nfsv4leasetime
		echo 1048576 > max_block_size		# the default depends on the memory of the guest
		echo "-2 -3 +4 +4.1 +4.2" > versions	# version 3 would need lockd and rpcbind
		exportfs -a && echo "rdma 20049" > portlist && echo '"$1"' > threads' || fail "nfsd: $1 threads"
}

nfs_mount() { # [OPTIONS]
	mount.nfs4 10.0.0.2:/ /mnt -o "rdma,port=20049,${1:-vers=4.2}"
}

sum() { sha256sum < "$1" | cut -c1-16; }

# /dev/urandom is slow under TCG: copies of one MiB, each with its number
make_data() { # FILE MIB
	dd if=/dev/urandom of=/tmp/random bs=1M count=1 2> /dev/null
	i=0
	while [ $i -lt "$2" ]; do
		echo "block $i"
		cat /tmp/random
		i=$((i + 1))
	done | head -c $(($2 * 1048576)) > "$1"
	rm /tmp/random
	[ "$(stat -c %s "$1")" = $(($2 * 1048576)) ] || fail "no data"
}

op() { knob "$1" ops | sed -n "s/^$2 //p"; }	# HCA NAME: the count of this operation
