#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# First hook of cmdline, without systemd: if the command line requests ibboot, or if that is not known,
# start ibboot. zz-ibboot-complete.sh starts ibboot for what later hooks request.

/usr/sbin/ibboot --limit 10 plan --requested
if [ $? != 2 ]; then
    # By this file the other scripts know that the cmdline hook has run.
    rm -f /run/ibboot/requested
    # shellcheck source=/dev/null
    . /usr/lib/ibboot/start.sh
fi
