. /run/ibboot-fabric/lib.sh
set -e
ip -o address
# pxelinux writes it at the end, as IPAPPEND 2 asks.
grep -q '^BOOT_IMAGE=http://192\.168\.77\.1/kernel .* BOOTIF=01-52-54-00-1b-b0-00$' /proc/cmdline
[ ! -d /sys/firmware/efi ]
[ "$(cat /sys/class/net/eth0/address)" = 52:54:00:1b:b0:00 ]
grep -q '^10.0.0.2:/ / nfs4 .*proto=tcp.*addr=10.0.0.2 ' /proc/mounts
ibboot check --all | grep -q '^  ok        root.path                  10.0.0.2 through ib0$'
