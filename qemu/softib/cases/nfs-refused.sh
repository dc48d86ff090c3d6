# SPDX-License-Identifier: GPL-2.0-only
# errors of the server: the mount of a client ends within its limit
# memory: 1024
# limit: 400
. /softib/nfs.sh
try() { # OPTIONS: the message of mount.nfs4
	timeout 40 mount.nfs4 "${server:-10.0.0.2}:/" /mnt -o "rdma,retry=0,timeo=20,retrans=1,$1" 2>&1
}
with_ipoib
nfs_server
for version in 4.0 4.1 4.2; do
	check "version $version" 'try port=20049,vers=$version && [ -e /mnt/hello ] && umount /mnt'
done
check "nobody listens on the port" 'try port=20050 | grep -q "Connection refused"'
nfs_threads 0
check "nfsd stopped" 'try port=20049 | grep -q "Connection refused"'
nfs_threads 4
check "nfsd runs again" 'try port=20049 && umount /mnt'
sh $fabric cable out
wait_for 5 "no carrier" '! has_carrier ib0'
at=$(seconds)
check "cable out: the mount ends" '! try port=20049'
check "in its time: $(since "$at") s" 'less "$(since "$at")" 20'
sh $fabric cable in
wait_for 20 "cable in" "$active && has_carrier ib0 && pings"
wait_for 30 "and mounts again" 'try port=20049 && umount /mnt'
