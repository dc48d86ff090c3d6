. /run/ibboot-fabric/lib.sh
set -e
talk 10.0.0.1 10.0.0.2
talk 10.0.1.1 10.0.1.2
