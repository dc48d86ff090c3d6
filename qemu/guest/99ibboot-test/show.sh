#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# show.sh TITLE COMMAND...: its output on the console, framed, when the case asks to be shown (boot-test.show).

grep -qw boot-test.show /proc/cmdline || exit 0
title=$1
shift
{
    # The kernel's own lines would fall into the table.
    dmesg -n 1
    echo "==== $title ===="
    "$@" 2>&1
    echo "==== end ===="
    dmesg -n 7
} > /dev/console
