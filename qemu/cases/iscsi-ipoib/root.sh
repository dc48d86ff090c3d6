. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^/dev/sda / ext4 ' /proc/mounts
[ "$(cat /sys/class/scsi_host/host*/proc_name)" = iscsi_tcp ]
check 0 'root.mounted               ext4 /dev/sda by iscsi' 'root.transport             tcp' \
    'root.path                  10.0.0.2 through ib0'
