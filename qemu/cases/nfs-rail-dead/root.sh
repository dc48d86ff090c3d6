set -e
grep -q '^10.0.0.2:/ / nfs4 .*proto=rdma' /proc/mounts
ibboot check --all | grep -q '^  ok        root.path                  softib0/1 to 10.0.0.2:20049, rpcrdma$'
