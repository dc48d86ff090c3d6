. /run/ibboot-fabric/lib.sh
iscsi_target raid
