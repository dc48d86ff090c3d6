. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^/dev/mapper/disk / ext4 ' /proc/mounts
check 0 'root.mounted               ext4 /dev/mapper/disk by iscsi' 'root.transport             tcp' \
    'root.path                  10.0.0.2 through ib0'
