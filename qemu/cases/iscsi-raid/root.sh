. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^/dev/md127 / ext4 ' /proc/mounts
check 0 'root.mounted               ext4 /dev/md127 by iscsi' 'root.transport             tcp' \
    'root.path                  10.0.0.2 through ib0'
