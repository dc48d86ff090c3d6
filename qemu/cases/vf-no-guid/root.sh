set -e
[ "$(cat /sys/class/infiniband/softib0/node_guid)" = 0000:0000:0000:0000 ]
ibboot check --all
! grep -q '"0x0000000000000000"' /run/ibboot/expected.json
