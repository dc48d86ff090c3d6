#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# First hook of cmdline, without systemd: if the kernel command line may request ibboot, start it.
# zz-ibboot-complete.sh starts ibboot for all other requests.

# shellcheck source=/dev/null
if . /usr/lib/ibboot/may-request.sh; then
    # shellcheck source=/dev/null
    . /usr/lib/ibboot/start.sh
fi
