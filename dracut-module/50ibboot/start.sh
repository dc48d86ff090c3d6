#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Without systemd (with systemd ibboot.service does this): start `ibboot up` in parallel. Sourced by
# hooks; does not wait.

mkdir -p /run/ibboot
(
    trap '' HUP
    /usr/sbin/ibboot up --early &
    echo "$!" > /run/ibboot/up.pid
    wait "$!"
    # shellcheck source=/dev/null
    IBBOOT_ENDED="exit $?; see dmesg" . /usr/lib/ibboot/ended.sh
    rm -f /run/ibboot/up.pid
) < /dev/null > /dev/null 2>&1 &
