. /run/ibboot-fabric/lib.sh
set -e
grep -q '^/dev/sda / ext4 ' /proc/mounts
check 1 'root.mounted               ext4 /dev/sda by iscsi' 'WARNING   root.path                  no path to this disk' 'expected a path to 10.0.1.2'
