# SPDX-License-Identifier: GPL-2.0-only
# the cable is pulled during an NFS write; a server restarts during a mount; both continue
# memory: 1024
# limit: 400
. /softib/nfs.sh
with_ipoib
nfs_server
nfs_mount || fail mount
make_data /tmp/data 32
(dd if=/tmp/data of=/mnt/data bs=1M conv=fsync 2> /dev/null && : > /tmp/written) &
sleep 0.3
sh $fabric cable out
stays 3 "cable out: the write waits" '[ ! -e /tmp/written ]'
sh $fabric cable in
wait_for 90 "cable in: the write goes on" '[ -e /tmp/written ]'
check "and is whole" '[ "$(sum /export/data)" = "$(sum /tmp/data)" ]'
nfs_threads 0
(echo late > /mnt/late && : > /tmp/late) &
stays 2 "server stopped: a write waits" '[ ! -e /tmp/late ]'
nfs_threads 4
wait_for 60 "server back: it goes on" '[ -e /tmp/late ]'
umount /mnt || fail umount
