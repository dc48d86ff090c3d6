. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^/dev/sda / ext4 ' /proc/mounts
[ "$(cat /sys/class/scsi_host/host*/proc_name)" = iscsi_iser ]
rdma resource show cm_id | tee cm_id.txt
grep -q 'link softib0/1 .*state CONNECT .*comm \[ib_iser\] src-addr 10.0.0.1:[0-9]* dst-addr 10.0.0.2:3260' cm_id.txt
# Not over a loop: the target wrote into this end's memory.
fabric knob softib1 ops | tee ops.txt
[ "$(sed -n 's/^write_bytes //p' ops.txt)" -gt 1000000 ]
check 0 'root.mounted               ext4 /dev/sda by iscsi' 'root.transport             iser' \
    'root.path                  softib0/1 to 10.0.0.2:3260, ib_iser'
