. /run/ibboot-fabric/lib.sh
set -e
ip -4 addr show dev eth0 | grep 'inet 10.0.2.15/24 .* eth0'
rdma link
rdma link | grep '^link softib0/1 .*state ACTIVE'
journalctl -b --no-pager | grep 'Started .*Device-Mapper Multipath Device Controller'
talk 10.0.0.1 10.0.0.2
