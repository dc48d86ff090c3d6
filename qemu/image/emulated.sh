#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# emulated.sh QEMU COMMAND [ARGUMENT]...: run the command where the kernel starts programs for aarch64 with the static
# program QEMU: in a user namespace with all users and a table of binfmt_misc of its own, which Linux has since 6.7. The
# machine is not changed. Run as root.
set -euo pipefail
# e_machine of an ELF header is 183 (include/uapi/linux/elf-em.h).
entry=$(< "$(dirname "$0")/binfmt-aarch64")$1:OCF
shift

exec 3>&1
# shellcheck disable=SC2016 # the inner shell expands its arguments
coproc namespace { exec unshare --user --mount --pid --fork bash -euc '
    echo made
    read -r _
    mount -t proc proc /proc
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    printf %s "$0" > /proc/sys/fs/binfmt_misc/register
    exec "$@" < /dev/null >&3 3>&-' "$entry" "$@"; }
pid=$namespace_PID
# unshare and the first process of its namespace, whose end is that of all others, ignore the other signals.
trap 'kill -KILL $(< "/proc/$pid/task/$pid/children")' EXIT
trap 'exit 1' HUP INT TERM
read -r _ <&"${namespace[0]}"
# Each user is the same inside.
for kind in uid gid; do
    awk '{ print $1, $1, $3 }' "/proc/self/${kind}_map" > "/proc/$pid/${kind}_map"
done
echo go >&"${namespace[1]}"
code=0
wait "$pid" || code=$?
trap - EXIT
exit "$code"
