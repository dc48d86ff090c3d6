# What was verified goes on without a subnet manager, and check says what is: a link that works and, where it
# is asked to, that nothing new will come. An interface that is set up anew needs one.
. /run/ibboot-fabric/lib.sh
set -e
# Paths are asked for at the first packet: both ends know theirs before the one who answers is gone.
talk 10.0.0.1 10.0.0.2
ibboot check --all --sm | grep -qFx '  ok        port.sa                    LID 1 answers'
fabric sm kill
check 0 'ok: 1 of 1 links verified'
code=0
ibboot check --all --sm > check.sm || code=$?
cat check.sm
[ "$code" = 1 ]
grep -qFx '  WARNING   port.sa                    the host at LID 1 answers, but no subnet administrator runs there' check.sm
talk 10.0.0.1 10.0.0.2
ip link set ib0 down
ip link set ib0 up
check 2 \
    'CRITICAL  ipoib.carrier              the subnet administrator at LID 1 does not answer' \
    '          expected carrier; restart the subnet manager after you have read its log: it configured the port, but it hangs, is overloaded or has ended'
fabric sm start
wait_for 120 '[ "$(cat /sys/class/net/ib0/carrier)" = 1 ]'
