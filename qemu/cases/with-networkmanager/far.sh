# The far end can do connected mode too.
. /run/ibboot-fabric/lib.sh
fabric sm start
far_connected 10.0.0.2/24
