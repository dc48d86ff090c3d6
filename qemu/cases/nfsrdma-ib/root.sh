. /run/ibboot-fabric/lib.sh
set -e
grep ' / ' /proc/mounts
grep -q '^10.0.0.2:/ / nfs4 .*proto=rdma,port=20049.*addr=10.0.0.2 ' /proc/mounts
rdma resource show cm_id | tee cm_id.txt
grep -q 'link softib0/1 .*state CONNECT .*comm \[rpcrdma\] src-addr 10.0.0.1:[0-9]* dst-addr 10.0.0.2:20049' cm_id.txt
# Not inline: the server wrote into the client's memory.
fabric knob softib1 ops | tee ops.txt
[ "$(sed -n 's/^write_bytes //p' ops.txt)" -gt 1000000 ]
ibboot check --all | tee check.txt
grep -q '^  ok        root.transport             rdma$' check.txt
grep -q '^  ok        root.path                  softib0/1 to 10.0.0.2:20049, rpcrdma$' check.txt
# A test of the NFS service ends the connection that the server has accepted.
accepted() {
    far rdma resource show cm_id | grep -c 'link softib1/1 .*state CONNECT' || true
}
before=$(accepted)
mv /run/ibboot/expected.json /run/ibboot/kept
echo "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.probe=10.0.0.2:20049" > /run/cmdline
mount --bind /run/cmdline /proc/cmdline
for _ in 1 2 3; do
    ibboot check --all > probe.txt
    grep '^ok  *server 10.0.0.2:20049  *answers through softib0/1$' probe.txt
done
umount /proc/cmdline
mv /run/ibboot/kept /run/ibboot/expected.json
far rdma resource show cm_id | tee accepted.txt
wait_for 30 '[ "$(accepted)" -eq "$before" ]'
