. /run/ibboot-fabric/lib.sh
set -e
# no COMMAND...: the command must fail
no() {
    if "$@"; then failed "$*"; exit 1; fi
}
modprobe ib_umad
modprobe ib_uverbs
wait_for 20 '[ -e /dev/infiniband/umad0 ] && [ -e /dev/infiniband/uverbs0 ]'

ibboot hardware-report --output read.tar > read.claims
no grep -E 'FAIL|SKIP' read.claims
for claim in 'state: facts ACTIVE, rdma -j link ACTIVE' \
    'physical state: facts LinkUp, ibstat LinkUp' \
    'port GUID: facts 0x0250f7000000a001, ibstat 0x0250f7000000a001' \
    'state: facts ACTIVE, ibv_devinfo -v ACTIVE'; do
    grep -qx "softib0/1 $claim: PASS" read.claims
done
grep -qx 'softib0 GET_CONTEXT accepted in .* ms: PASS' read.claims
grep -qx 'softib0/1 subnet administrator after .* ms: group ff12:401b:ffff::ffff:ffff, port MTU 4096: PASS' read.claims
grep -qx 'saved tree check reports the same as on the machine: PASS' read.claims
tar xf read.tar
cmp read.claims ibboot-report/report/claims
ibboot check --all > check.live
ibboot check --all --root ibboot-report > check.saved
cmp check.live check.saved
grep -q 'softib0: port 1: ACTIVE' ibboot-report/report/kernel-log
grep -q S3CR3T /proc/cmdline
no grep -r S3CR3T ibboot-report

# What is used is left alone.
ip addr add 10.0.0.9/24 dev ib0
no ibboot hardware-report --disturb softib0/1 --output used.tar 2> used.err
grep -q 'softib0/1: is not disturbed: the port is in use: ib0 has the address 10.0.0.9/24, ib0 has the route 10.0.0.0/24' used.err
[ ! -e used.tar ]
ip addr del 10.0.0.9/24 dev ib0

ibboot hardware-report --disturb softib0/1 --rebind --output disturbed.tar > disturbed.claims
rm -r ibboot-report
tar xf disturbed.tar
cp ibboot-report/report/trace ibboot-report/report/events .
grep -q 'uevent remove infiniband ' events
grep -q 'rtnetlink ib0: down' events
grep -q ' port_active$' trace
is_state softib0 1 ACTIVE

# The trace starts at once, not with an event of the port.
grep -v '^start ' trace > script
ibv_asyncwatch -d softib0 > heard.raw 2>&1 &
watcher=$!
wait_for 10 'grep -q "async event FD" heard.raw'
fabric knob softib0/1 events "$(cat script)"
sed -n 's/^[0-9]* \([a-z_]*\)$/\1/p' trace > expected
wait_for 60 '[ "$(grep -c IBV_EVENT heard.raw)" -ge "$(wc -l < expected)" ]'
kill $watcher
sed -n 's/.*IBV_EVENT_\([A-Z_]*\).*/\1/p' heard.raw | tr A-Z a-z > heard
cmp expected heard
