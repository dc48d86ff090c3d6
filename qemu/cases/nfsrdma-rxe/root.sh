set -e
grep ' / ' /proc/mounts
grep -q '^10.0.0.2:/ / nfs4 .*proto=rdma,port=20049.*addr=10.0.0.2 ' /proc/mounts
rdma resource show cm_id | tee cm_id.txt
grep -q 'link rxe0/1 .*state CONNECT .*comm \[rpcrdma\] src-addr 10.0.0.1:[0-9]* dst-addr 10.0.0.2:20049' cm_id.txt
# network-legacy had the interface first, and left the mount to the verdict.
[ -e /run/ibboot/held-eth0 ]
ibboot check --all | tee check.now
grep -q '^  ok        root.transport             rdma$' check.now
grep -q '^  ok        root.path                  rxe0/1 to 10.0.0.2:20049, rpcrdma$' check.now
