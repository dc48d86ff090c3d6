. /run/ibboot-fabric/lib.sh
talk 10.0.0.1 10.0.0.2
