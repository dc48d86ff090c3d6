# No network namespace: one would keep the kernel from changing the mode.
. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/32
