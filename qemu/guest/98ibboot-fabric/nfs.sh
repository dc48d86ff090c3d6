#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# nfs.sh [rdma]: in the far end's namespace, an NFS server (version 4) of the disk that other cases boot from. Its
# programs have a root directory in /run, which outlives the initramfs, and a mount namespace of their own; systemd
# spares, at the switch into the real root, a process whose command line begins with '@'.

. /run/ibboot-fabric/lib.sh
server=$place/server
inside() { chroot "$server" @ld --library-path /lib "$@"; }

mount --make-rprivate /
mkdir -p "$server/proc" "$server/export" "$server/tmp" "$server/var/lib/nfs/rpc_pipefs" "$server/var/lib/nfs/nfsdcld"
: > "$server/var/lib/nfs/etab"
: > "$server/var/lib/nfs/rmtab"
mount -t ext4 /dev/vda "$server/export" || failed "the disk cannot be mounted"
mount -t proc proc "$server/proc"
# Both take the network namespace of who mounts them.
mount -t nfsd nfsd "$server/proc/fs/nfsd" || failed "no nfsd"
mount -t rpc_pipefs rpc_pipefs "$server/var/lib/nfs/rpc_pipefs"
echo '/export *(rw,async,no_root_squash,no_subtree_check,insecure,fsid=0)' > "$server/etc/exports"

# Both go into the background when they are ready. Without nfsdcld there is a grace period of at least 10 s.
inside /usr/sbin/nfsdcld || failed "nfsdcld"
inside /usr/sbin/rpc.mountd -N 2 -N 3 || failed "rpc.mountd"
cd "$server/proc/fs/nfsd" || exit 1
echo 10 > nfsv4gracetime
echo 10 > nfsv4leasetime
# Else it depends on the memory of the guest; longer bursts than an IPoIB receive queue holds are lost.
if [ "${1:-}" = rdma ]; then echo 1048576; else echo 65536; fi > max_block_size
# Version 3 would want lockd and rpcbind.
echo "-2 -3 +4 +4.1 +4.2" > versions || echo "-3 +4 +4.1 +4.2" > versions
inside /usr/sbin/exportfs -a || failed "exportfs"
# Kernels before 7 make the listener for TCP themselves.
if [ "${1:-}" = rdma ]; then echo rdma 20049; else echo tcp 2049; fi > portlist || failed "no listener"
echo 4 > threads || failed "nfsd: no threads"
