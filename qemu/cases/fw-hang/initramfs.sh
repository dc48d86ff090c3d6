# The firmware of the second HCA takes ten minutes for each query.
. /run/ibboot-fabric/lib.sh
fabric knob softib2 hang_ms 600000
: > /run/ibboot-test/dead-hca
