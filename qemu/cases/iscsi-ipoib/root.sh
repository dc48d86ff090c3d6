. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^/dev/sda / ext4 ' /proc/mounts
[ "$(cat /sys/class/scsi_host/host*/proc_name)" = iscsi_tcp ]
check 0 'root.mounted               ext4 /dev/sda by iscsi' 'root.transport             tcp' \
    'root.path                  10.0.0.2 through ib0'
# Nothing of ibboot's has the password: no file, no output, no journal.
[ "$(stat -c %a /run/ibboot/state.json)" = 600 ]
# How they end is not the question: this root has no modules to plan with.
{
    for format in text json nagios prom nhc; do ibboot check --format "$format"; done
    for format in text json; do ibboot plan --format "$format"; done
    for format in text json svg; do ibboot timeline --format "$format"; done
    ibboot facts --tree /run/tree
    journalctl --boot --no-pager --unit='ibboot*'
} > /run/said 2>&1 || :
[ "$(stat -c %a /run/tree)" = 700 ]
grep -q 'netroot=iscsi:\*\*\*\*@10.0.0.2' /run/said
if grep -r S3CR3T /run/said /run/tree /run/ibboot; then exit 1; fi
