#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# In the initramfs, on a command line without anything for ibboot: what its hooks cost, each loop between two
# records of the kernel log. `empty` is the same loop over a hook without a command, `start` a process that does nothing.

rounds=30

timed() {
    name=$1
    shift
    echo "ibboot-bench: $name begins" > /dev/kmsg
    round=0
    while [ "$round" -lt "$rounds" ]; do
        "$@"
        round=$((round + 1))
    done
    echo "ibboot-bench: $name ends after $rounds" > /dev/kmsg
}

# Sourced in a function, as dracut sources its hooks: they return.
hooks() {
    for hook in $found; do
        # shellcheck source=/dev/null
        . "$hook"
    done
}

start() {
    /usr/sbin/ibboot --version > /dev/null
}

requested() {
    /usr/sbin/ibboot plan --requested
}

# dracut exports hookdir. What runs in a boot that goes well: the emergency hook does not.
found=$(grep -l -e '^/usr/sbin/ibboot plan' -e '/run/ibboot/requested' "$hookdir"/*/*.sh)
# shellcheck disable=SC2086
echo "ibboot-bench: hooks are" $found > /dev/kmsg
echo > /run/ibboot-test/empty.sh
requested
start

timed start start
timed requested requested
timed hooks hooks
found=/run/ibboot-test/empty.sh
timed empty hooks
