# SPDX-License-Identifier: GPL-2.0-only
# three writers and readers over NFS/RDMA, IPoIB in connected mode under a flood,
# six cable pulls, then 20 mounts; freed memory is poisoned
# memory: 1024
# limit: 900
# append: slub_debug=FZP page_poison=1
. /softib/nfs.sh
with_ipoib
nfs_server
nfs_mount || fail mount
echo connected > /sys/class/net/ib0/mode
inside sh -c 'echo connected > /sys/class/net/ib1/mode'
make_data /tmp/data 4
worker() { # NUMBER
	n=0
	while [ ! -e /tmp/stop ]; do
		dd if=/tmp/data of="/mnt/$1" bs=64k conv=fsync 2> /dev/null || : > /tmp/bad
		dd if="/mnt/$1" of="/tmp/back$1" bs=64k iflag=direct 2> /dev/null || : > /tmp/bad
		cmp -s /tmp/data "/tmp/back$1" || : > /tmp/bad
		rm "/mnt/$1"
		n=$((n + 1))
	done
	echo $n > "/tmp/done$1"
}
for i in 1 2 3; do worker $i & done
ping -q -f -s 30000 10.0.0.2 > /dev/null 2>&1 &
flood=$!
for pull in 1 2 3 4 5 6; do
	sleep 4
	sh $fabric cable out
	sleep $((pull % 3)).5
	sh $fabric cable in
	wait_for 20 "pull $pull: ACTIVE again" "$active"
	check "no worker has failed" '[ ! -e /tmp/bad ]'
done
sleep 5
: > /tmp/stop
wait_for 200 "all workers have ended" '[ -e /tmp/done1 ] && [ -e /tmp/done2 ] && [ -e /tmp/done3 ]'
kill $flood
check "rounds: $(cat /tmp/done1 /tmp/done2 /tmp/done3 | tr '\n' ' '), none bad" '[ ! -e /tmp/bad ]'
umount /mnt || fail umount
i=0
while [ $i -lt 20 ]; do
	nfs_mount || fail "mount $i"
	[ -e /mnt/hello ] || fail "mount $i: empty"
	umount /mnt || fail "umount $i"
	i=$((i + 1))
done
say "20 mounts"
