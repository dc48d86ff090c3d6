set -e
# no COMMAND...: the command must fail
no() {
    if "$@"; then echo "FAILED: $*"; exit 1; fi
}
modprobe ib_uverbs
no ibboot hardware-report --disturb rxe0/2 --output none.tar 2> none.err
grep -qx 'ibboot: --disturb: no such port: rxe0/2, expected rxe0/1' none.err
ibboot hardware-report --disturb rxe0/1 --output report.tar > claims
no grep FAIL claims
grep -qx 'rxe0/1 network device: facts eth0, rdma -j link eth0: PASS' claims
grep -qx 'rxe0/1 state: facts ACTIVE, ibv_devinfo -v ACTIVE: PASS' claims
grep -qx 'rxe0/1 link layer: facts Ethernet, ibstat Ethernet: PASS' claims
tar xf report.tar
cat ibboot-report/report/events ibboot-report/report/trace
grep -q ' uverbs PORT_ACTIVE port 1$' ibboot-report/report/events
grep -qx 'start port_err' ibboot-report/report/trace
