. /run/ibboot-fabric/lib.sh
talk 10.0.1.1 10.0.1.2
