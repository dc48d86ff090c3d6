. /run/ibboot-fabric/lib.sh
sleep 30
say "the subnet manager starts"
fabric sm start
fabric address 10.0.0.2/24
