. /run/ibboot-fabric/lib.sh
set -e
[ "$(cut -c 1-2 /sys/class/net/ib0/address)" = 00 ]
[ "$(cat /sys/class/net/ib0/mode)" = datagram ]
[ "$(cat /sys/class/net/ib0/mtu)" = 2044 ]
rdma res show qp | grep 'link softib0/1 .* comm \[softib\]'
talk 10.0.0.1 10.0.0.2 2016
