. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
iscsi_target raid
