set -e
grep -q '^10.0.0.2:/ / nfs4 .*proto=rdma' /proc/mounts
