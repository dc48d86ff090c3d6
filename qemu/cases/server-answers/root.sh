. /run/ibboot-fabric/lib.sh
# What the initramfs verified is handed over, and asked again here.
ibboot check --all | grep -x 'ok  *server 10.0.0.2  *answers through softib0/1' || exit 1

# no_answer ADDRESS[:PORT] WHY: the same without a handover
no_answer() {
    mv /run/ibboot/expected.json /run/ibboot/kept
    echo "ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.probe=$1" > /run/cmdline
    mount --bind /run/cmdline /proc/cmdline
    ibboot check --all > no-answer.txt
    code=$?
    umount /proc/cmdline
    mv /run/ibboot/kept /run/ibboot/expected.json
    cat no-answer.txt
    [ "$code" -eq 2 ] && grep -x "CRITICAL  *server $1  *$2" no-answer.txt
}
no_answer 10.0.0.2:20049 'the host answers, but no program listens on port 20049' || exit 1
no_answer 10.0.0.99 'no host answers for this address (ARP, ND)' || exit 1
no_answer 192.0.2.1 'no route to the server' || exit 1
