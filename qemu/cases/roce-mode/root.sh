set -e
# ibboot let go of the devices: the directories are gone again, and the mode stayed.
mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config
[ -z "$(ls /sys/kernel/config/rdma_cm)" ]
mkdir /sys/kernel/config/rdma_cm/rxe0
[ "$(cat /sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_mode)" = "RoCE v2" ]
rmdir /sys/kernel/config/rdma_cm/rxe0
