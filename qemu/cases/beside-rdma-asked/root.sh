. /run/ibboot-fabric/lib.sh
set -e
rdma link | grep '^link softib0/1 .*state ACTIVE'
talk 10.0.0.1 10.0.0.2
