#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# First hook of cmdline, without systemd: if the command line requests ibboot, or if that is not known,
# start ibboot. zz-ibboot-complete.sh starts ibboot for what later hooks request. The question writes no
# file: /run/ibboot/asked says that the cmdline hook has run.

/usr/sbin/ibboot --limit 10 plan --asked --cmdline "$(getcmdline)"
if [ $? != 2 ]; then
    # shellcheck source=/dev/null
    . /usr/lib/ibboot/start.sh
fi
