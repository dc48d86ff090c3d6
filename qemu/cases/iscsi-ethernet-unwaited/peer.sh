. /run/ibboot-fabric/lib.sh
wait_for 60 '[ -e /sys/class/net/eth0 ]'
ip addr add 10.0.0.2/24 dev eth0
ip link set eth0 up
iscsi_target
