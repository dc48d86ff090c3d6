set -e
ip address add 192.0.2.1/24 dev eth0
rdma -j -d link show > rdma-link.json
rdma -j -d dev show > rdma-dev.json
ibstat > ibstat.txt
ibv_devinfo -v > ibv_devinfo.txt

# Verbs: 100 messages of 4 KiB through a reliable connection, checked by the program itself.
ibv_rc_pingpong -d rxe0 -g 0 -s 4096 -n 100 -c > pingpong-server.txt 2>&1 &
server=$!
tries=100
until ss -ltn | grep -q ':18515 '; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ]
    sleep 0.1
done
ibv_rc_pingpong -d rxe0 -g 0 -s 4096 -n 100 -c 127.0.0.1
wait "$server"

# The connection manager: rping checks what it reads back.
rping -s -C 20 -V -a 192.0.2.1 > rping-server.txt 2>&1 &
server=$!
tries=100
until rdma res show cm_id | grep -q LISTEN; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ]
    sleep 0.1
done
rping -c -C 20 -V -v -a 192.0.2.1
wait "$server"
