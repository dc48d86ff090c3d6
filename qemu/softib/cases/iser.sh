# SPDX-License-Identifier: GPL-2.0-only
# iSCSI over RDMA
# memory: 1024
. /softib/block.sh
block_fabric
for module in ib_isert ib_iser sd_mod target_core_mod; do modprobe $module || fail "modprobe $module"; done
target=/sys/kernel/config/target
name=iqn.2026-01.test:disk
mkdir -p $target/core/rd_mcp_0/disk $target/iscsi/$name/tpgt_1
echo rd_pages=16384 > $target/core/rd_mcp_0/disk/control
echo 1 > $target/core/rd_mcp_0/disk/enable
group=$target/iscsi/$name/tpgt_1
mkdir -p $group/lun/lun_0 "$group/np/10.0.0.2:3260"
ln -s $target/core/rd_mcp_0/disk $group/lun/lun_0/disk
echo 0 > $group/attrib/authentication
echo 1 > $group/attrib/generate_node_acls
echo 0 > $group/attrib/demo_mode_write_protect
echo 1 > "$group/np/10.0.0.2:3260/iser" || fail "no target"
echo 1 > $group/enable
mkdir -p /etc/iscsi/nodes /etc/iscsi/ifaces /var/lib/iscsi /run/lock/iscsi
echo "InitiatorName=iqn.2026-01.test:here" > /etc/iscsi/initiatorname.iscsi
iscsid || fail iscsid
iscsiadm -m node -o new -T $name -p 10.0.0.2:3260,1 -I iser > /dev/null || fail "no node"
iscsiadm -m node -T $name -p 10.0.0.2:3260 -I iser --login > /dev/null || fail "no login"
wait_for 20 "the disk is there" '[ -b /dev/sda ]'
check "connected over RDMA" 'rdma res show cm_id | grep -q "CONNECT.*ib_iser"'
block_check /dev/sda 16
iscsiadm -m node -T $name -p 10.0.0.2:3260 --logout > /dev/null || fail "no logout"
wait_for 10 "disconnected" '! rdma res show cm_id | grep -q "CONNECT.*ib_iser"'
check "nothing was refused" '[ "$(op softib0 nak)" = 0 ] && [ "$(op softib1 nak)" = 0 ]'
