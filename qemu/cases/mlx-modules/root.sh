# Loaded in the initramfs, live here, with the parameters that were asked for.
for module in mlx4_ib mlx5_ib ib_ipoib ib_umad rdma_ucm rdma_rxe; do
    state=$(cat "/sys/module/$module/initstate" 2>&1)
    echo "$module: $state"
    [ "$state" = live ] || exit 1
done
is() {
    value=$(cat "/sys/module/$1" 2>&1)
    echo "$1: $value, expected $2"
    [ "$value" = "$2" ] || exit 1
}
is mlx5_core/parameters/prof_sel 1
is mlx4_core/parameters/log_num_mgm_entry_size -7
is ib_ipoib/parameters/send_queue_size 512
dmesg | grep 'site: before ib_umad' || exit 1
