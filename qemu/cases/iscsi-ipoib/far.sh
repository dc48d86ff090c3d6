# An iSCSI target at the far end, for who knows its password.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24
iscsi_target chap ibboot S3CR3T-of-CHAP
