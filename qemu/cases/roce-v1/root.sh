set -e
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
mode() {
    mkdir "/sys/kernel/config/rdma_cm/$1"
    cat "/sys/kernel/config/rdma_cm/$1/ports/1/default_roce_mode"
    rmdir "/sys/kernel/config/rdma_cm/$1"
}
[ "$(mode softib2)" = "IB/RoCE v1" ]
[ "$(mode softib3)" = "RoCE v2" ]
