# SPDX-License-Identifier: GPL-2.0-only
# NVMe over RDMA
# memory: 1024
. /softib/block.sh
block_fabric
for module in nvmet nvmet_rdma nvme_rdma; do modprobe $module || fail "modprobe $module"; done
mkdir /export; mount -t tmpfs -o size=200m export /export; truncate -s 64M /export/disk
target=/sys/kernel/config/nvmet
mkdir $target/subsystems/test
echo 1 > $target/subsystems/test/attr_allow_any_host
mkdir $target/subsystems/test/namespaces/1
echo /export/disk > $target/subsystems/test/namespaces/1/device_path
echo 1 > $target/subsystems/test/namespaces/1/buffered_io
echo 1 > $target/subsystems/test/namespaces/1/enable
mkdir $target/ports/1
for pair in trtype:rdma adrfam:ipv4 traddr:10.0.0.2 trsvcid:4420; do
	echo "${pair#*:}" > "$target/ports/1/addr_${pair%:*}"
done
ln -s $target/subsystems/test $target/ports/1/subsystems/test || fail "no target"
# one write makes one connection; a shell builtin may split the write
echo "transport=rdma,traddr=10.0.0.2,trsvcid=4420,nqn=test,hostnqn=nqn.host,hostid=11111111-2222-3333-4444-555555555555" > /tmp/connect
cat /tmp/connect > /dev/nvme-fabrics || fail "no connection"
wait_for 10 "the namespace is there" '[ -b /dev/nvme0n1 ]'
check "connected over RDMA" 'rdma res show cm_id | grep -q "CONNECT.*nvme_rdma"'
block_check /dev/nvme0n1 16
for controller in /sys/class/nvme/nvme*; do echo 1 > "$controller/delete_controller"; done
wait_for 10 "disconnected" '! rdma res show cm_id | grep -q "CONNECT.*nvme_rdma"'
check "nothing was refused" '[ "$(op softib0 nak)" = 0 ] && [ "$(op softib1 nak)" = 0 ]'
