#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-trigger, without systemd (with systemd ibboot.service does this): start `ibboot up` in
# parallel. This hook does not wait.

[ -e /run/ibboot/asked ] || return 0

(
    trap '' HUP
    /usr/sbin/ibboot up &
    echo "$!" > /run/ibboot/up.pid
    wait "$!"
    # shellcheck source=/dev/null
    IBBOOT_ENDED="exit $?" . /usr/lib/ibboot/ended.sh
) < /dev/null > /dev/null 2>&1 &
