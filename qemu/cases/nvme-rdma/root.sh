. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
disk=$(sed -n 's#^\(/dev/nvme[0-9]*n1\) / ext4 .*#\1#p' /proc/mounts)
rdma resource show cm_id | tee cm_id.txt
grep -q 'link softib0/1 .*state CONNECT .*comm \[nvme_rdma\] src-addr 10.0.0.1:[0-9]* dst-addr 10.0.0.2:4420' cm_id.txt
# Not over a loop: the target wrote into this end's memory.
fabric knob softib1 ops | tee ops.txt
[ "$(sed -n 's/^write_bytes //p' ops.txt)" -gt 1000000 ]
check 0 "root.mounted               ext4 $disk by nvme" 'root.transport             rdma' \
    'root.path                  softib0/1 to 10.0.0.2:4420, nvme_rdma'
