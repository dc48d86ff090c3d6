# An iSCSI target with a portal of RDMA at the other end of the cable, in the initial namespace: that knows no other.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/32
iscsi_target iser
