# SPDX-License-Identifier: GPL-2.0-only
# NFS over RDMA: the data is transferred by RDMA READ and WRITE, and comes back unchanged
# memory: 1024
# limit: 400
. /softib/nfs.sh
with_ipoib
nfs_server
nfs_mount || fail mount
check "mounted over RDMA" 'grep -q " /mnt nfs4 .*proto=rdma" /proc/mounts'
check "hello" '[ "$(cat /mnt/hello)" = hello ]'
# On 5.15 rdma(8) ends with EINVAL at the list of this device.
case $(uname -r) in
    5.15.*) ;;
    *) check "the client's connection" 'rdma res show cm_id | grep -q "CONNECT.*src-addr 10.0.0.1"' ;;
esac
make_data /tmp/data 8
dd if=/tmp/data of=/mnt/data bs=1M conv=fsync 2> /dev/null || fail write
check "written: the server has it" '[ "$(sum /export/data)" = "$(sum /tmp/data)" ]'
check "by RDMA READ of the server, every octet" '[ "$(op softib1 read_bytes)" = 8388608 ]'
echo 3 > /proc/sys/vm/drop_caches
check "read back" '[ "$(sum /mnt/data)" = "$(sum /tmp/data)" ]'
check "by RDMA WRITE of the server" '[ "$(op softib1 write_bytes)" -ge 8388608 ]'
mkdir /mnt/dir
i=0; while [ $i -lt 200 ]; do echo $i > /mnt/dir/$i; i=$((i + 1)); done
check "200 small files" '[ "$(cat /mnt/dir/* | awk "{ s += \$1 } END { print s }")" = 19900 ]'
check "nothing was refused" '[ "$(op softib0 nak)" = 0 ] && [ "$(op softib1 nak)" = 0 ]'
umount /mnt || fail umount
wait_for 10 "no memory region is left" 'rdma res show | grep -q "softib0.* mr 0 "'
