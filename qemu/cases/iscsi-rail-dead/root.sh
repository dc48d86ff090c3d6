. /run/ibboot-fabric/lib.sh
set -e
grep -q '^/dev/sda / ext4 ' /proc/mounts
check 1 'root.mounted               ext4 /dev/sda by iscsi' 'root.path                  10.0.0.2 through ib0'
