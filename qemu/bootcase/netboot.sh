#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# netboot.sh ADDRESS FOLDER [DNSMASQ'S ARGUMENTS...] -- QEMU...: in a private network namespace,
# serve FOLDER/served at the other end of tap0 as long as QEMU runs.
set -euo pipefail
address=$1 folder=$2
shift 2
boot=()
while [ "$1" != -- ]; do
    boot+=("$1")
    shift
done
shift

ip link set lo up
ip tuntap add tap0 mode tap
ip address add "$address/24" dev tap0
ip link set tap0 up

# The servers write to their own files, because stdout belongs to the guest's console.
dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --no-ping --user=root --group=root --pid-file \
    --log-facility=- --log-dhcp --dhcp-leasefile="$folder/leases" --dhcp-authoritative \
    --dhcp-range="${address%.*}.10,${address%.*}.20,255.255.255.0,1h" \
    --dhcp-option=option:router --enable-tftp --tftp-root="$folder/served" "${boot[@]}" < /dev/null > "$folder/dnsmasq.log" 2>&1 &
servers=$!
python3 -m http.server --bind "$address" --directory "$folder/served" 80 < /dev/null > "$folder/http.log" 2>&1 &
servers="$servers $!"
# shellcheck disable=SC2064,SC2086
trap "kill $servers 2> /dev/null || true" EXIT
"$@"
