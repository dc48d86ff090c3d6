# An NVMe target at the other end of the cable, in the initial namespace: it knows no other.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/32
nvme_target
