. /run/ibboot-fabric/lib.sh
set -e
grep -q '^10.0.0.2:/ / nfs4 .*proto=tcp.*addr=10.0.0.2 ' /proc/mounts
ip -4 addr show dev ib0 | grep -q 'inet 10.0.0.55/24 .* ib0'
systemctl is-active ibboot-lease.service
: > /run/ibboot-test/orderly
