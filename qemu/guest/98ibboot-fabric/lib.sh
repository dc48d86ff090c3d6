# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# What the far end's scripts share, in the initramfs and in the real root: `. /run/ibboot-fabric/lib.sh`.

place=/run/ibboot-fabric
# The system's own programs first: busybox fills the gaps.
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin:$place:$place/bin:$place/applets
# A real root has no opensm of its own.
FABRIC_PROGRAMS=$place
export PATH FABRIC_PROGRAMS

# say WHAT: a line in the kernel's log, which has the time
say() {
    echo "<6>boot-test: $*" > /dev/kmsg
}

# failed WHAT: the same on the console, which fails the case
failed() {
    echo "<3>boot-test: FAILED: $*" > /dev/kmsg
    return 1
}

# fabric VERB...: see qemu/softib/fabric.sh; what does not work is said. Interfaces are there when ibboot has loaded
# ib_ipoib, which on a slow machine takes its time.
fabric() {
    case $1 in
        address | netdev) wait_for 240 'grep -qx 32 /sys/class/net/*/type' ;;
    esac
    sh "$place/fabric.sh" "$@" || failed "fabric $*"
}

# wait_for SECONDS CONDITION: a deadline, never a count
wait_for() {
    end=$(($(cut -d. -f1 /proc/uptime) + $1))
    until eval "$2"; do
        [ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ] || {
            failed "not in $1 s: $2"
            return 1
        }
        sleep 0.1
    done
}

# port HCA PORT FILE: a file of a near port in sysfs
port() {
    cat "/sys/class/infiniband/$1/ports/$2/$3"
}

# near_guid: the port GUID of the near end, in the form of a DHCP identifier
near_guid() {
    port softib0 1 gids/0 | sed 's/.*:\(....\):\(....\):\(....\):\(....\)$/\1\2\3\4/; s/../&:/g; s/:$//'
}

# is_state HCA PORT STATE
is_state() {
    grep -q "$3" "/sys/class/infiniband/$1/ports/$2/state" 2> /dev/null
}

# far PROGRAM...: in the far end's namespace; a machine of its own is one
far() {
    if [ -e "$place/alone" ]; then "$@"; else sh "$place/fabric.sh" exec "$@"; fi
}

# talk NEAR FAR [SIZE]: pings both ways in one piece
talk() {
    ping -c 3 -i 0.2 -W 10 -s "${3:-56}" -M do "$2" && far ping -c 3 -i 0.2 -W 10 -s "${3:-56}" -M do "$1"
}

# nfs_server [rdma]: an NFS server of the disk in the far end's namespace (nfs.sh)
nfs_server() {
    for module in virtio_blk ext4 nfsd rpcrdma; do
        [ "$module/${1:-}" = rpcrdma/ ] || modprobe "$module" || failed "modprobe $module"
    done
    wait_for 60 '[ -b /dev/vda ]'
    far sh "$place/nfs.sh" "$@"
    say "the server runs"
}

# nbd_server: on a second machine, the disk as the NBD export `disk`
nbd_server() {
    modprobe virtio_blk || failed "modprobe virtio_blk"
    wait_for 60 '[ -b /dev/vda ]'
    printf '[generic]\n[disk]\nexportname = /dev/vda\n' > "$place/nbd.conf"
    "$place/server/bin/@ld" --library-path "$place/server/lib" "$place/server/usr/bin/nbd-server" -C "$place/nbd.conf" \
        || failed "nbd-server"
    say "the server runs"
}

# iscsi_target [iser | chap USER PASSWORD | two | raid]: the disk as an iSCSI target at the far end's 10.0.0.2 (iscsi.sh)
iscsi_target() {
    case ${1:-} in
        iser) more=ib_isert ;;
        raid) more="target_core_file ext4" ;;
        *) more= ;;
    esac
    for module in virtio_blk target_core_iblock iscsi_target_mod $more; do
        modprobe "$module" || failed "modprobe $module"
    done
    wait_for 60 '[ -b /dev/vda ]'
    far sh "$place/iscsi.sh" "$@"
    say "the target is there"
}

# nvme_target: the disk as a namespace of an NVMe subsystem, over RDMA, at 10.0.0.2; all of it is the kernel's
nvme_target() {
    for module in virtio_blk nvmet_rdma; do
        modprobe "$module" || failed "modprobe $module"
    done
    wait_for 60 '[ -b /dev/vda ]'
    mkdir -p "$place/config"
    mount -t configfs configfs "$place/config" || failed "no configfs"
    target=$place/config/nvmet
    disk=$target/subsystems/nqn.2026-01.test:disk
    mkdir "$disk" "$disk/namespaces/1" "$target/ports/1" || failed "no nvmet"
    echo 1 > "$disk/attr_allow_any_host"
    echo /dev/vda > "$disk/namespaces/1/device_path"
    echo 01234567-89ab-cdef-0123-456789abcdef > "$disk/namespaces/1/device_uuid"
    echo 1 > "$disk/namespaces/1/enable" || failed "the disk cannot be taken"
    for pair in trtype:rdma adrfam:ipv4 traddr:10.0.0.2 trsvcid:4420; do
        echo "${pair#*:}" > "$target/ports/1/addr_${pair%:*}"
    done
    ln -s "$disk" "$target/ports/1/subsystems/disk" || failed "no NVMe target"
    say "the target is there"
}

# http_server: the files of the disk, until the switch into the real root
http_server() {
    modprobe virtio_blk || failed "modprobe virtio_blk"
    wait_for 60 '[ -b /dev/vda ]'
    mkdir -p "$place/www"
    mount -t ext4 -o ro /dev/vda "$place/www" || failed "the disk cannot be mounted"
    far httpd -p 80 -h "$place/www" || failed "httpd"
    say "the server runs"
}

# dhcp_server OPTION...: dnsmasq at the far end, in the foreground
dhcp_server() {
    # An initramfs without systemd has no users.
    grep -qs '^root:' /etc/passwd || echo 'root:x:0:0:root:/root:/bin/sh' >> /etc/passwd
    grep -qs '^root:' /etc/group || echo 'root:x:0:' >> /etc/group
    far sh "$place/serve" dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --no-ping --user=root --group=root \
        --pid-file --log-facility=- --log-dhcp --dhcp-leasefile=/run/fabric/leases "$@"
}

# far_child ADDRESS/LEN: the far end's interface in partition 0x8001, made where it is born and moved
far_child() {
    name=$(fabric netdev) || return
    far sh -c "echo 0x8001 > /sys/class/net/$name/create_child"
    far test -e "/sys/class/net/$name.8001" || ip link set "$name.8001" netns fabric || failed "$name.8001: not moved"
    far ip addr add "$1" dev "$name.8001"
    far ip link set "$name.8001" up
}

# far_connected ADDRESS/LEN: the far end's interface in connected mode, with an address
far_connected() {
    name=$(fabric netdev) || return
    far sh -c "echo connected > /sys/class/net/$name/mode"
    fabric address "$1"
}

# heard SECONDS LINE: waits for a whole line of the kernel's log (grep's basic pattern), or finds it there
heard() {
    timeout "$1" grep -qm 1 "^[0-9,-]*;$2\$" /dev/kmsg || failed "not logged in $1 s: $2"
}

# check CODE TEXT...: `ibboot check` ends with this code, and each text is in a line of it
check() {
    expected=$1
    shift
    code=0
    ibboot check --all > check.now || code=$?
    [ "$code" = "$expected" ] || {
        cat check.now
        echo "ibboot check: exit $code, expected $expected"
        return 1
    }
    for text; do
        grep -qF -- "$text" check.now || {
            cat check.now
            echo "ibboot check: no line has: $text"
            return 1
        }
    done
}

# rc_queue_pair HCA PORT: `rdma res show qp` has an RC queue pair of IPoIB that is ready to send
rc_queue_pair() {
    rdma res show qp | grep "link $1/$2 .* type RC state RTS .*comm \[ib_ipoib\]"
}
