#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# pre-trigger, without systemd (else it is ibboot.service): start `ibboot up` beside everything else. Nothing waits
# for it here.

[ -e /run/ibboot/asked ] || return 0

(
    trap '' HUP
    /usr/sbin/ibboot up &
    echo "$!" > /run/ibboot/up.pid
    wait "$!"
    # shellcheck source=/dev/null
    IBBOOT_ENDED="exit $?" . /usr/lib/ibboot/ended.sh
) < /dev/null > /dev/null 2>&1 &
