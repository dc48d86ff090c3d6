. /run/ibboot-fabric/lib.sh
set -e
# One training was enough: nobody took the link down again.
[ "$(port softib0 1 counters/link_downed)" = 0 ]
talk 10.0.0.1 10.0.0.2
