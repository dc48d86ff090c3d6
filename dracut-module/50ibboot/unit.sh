#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sourced by job.sh with systemd: if ibboot.service does not run and is not about to, sets ibboot_ended to
# its state. What keeps systemd from starting the unit, such as a wrong drop-in, may keep it from running
# ended.sh too.

# One line; systemctl orders the properties.
# shellcheck disable=SC2046,SC2116
ibboot_unit=$(echo $(systemctl show -p ActiveState -p ConditionResult -p ExecMainStatus -p Job \
    -p LoadState -p Result ibboot.service))
case " $ibboot_unit " in
    # A version of systemctl prints an empty property, another none.
    *" Job="[0-9]*) ;;
    *" ActiveState=inactive "* | *" ActiveState=failed "*)
        # shellcheck disable=SC2034
        ibboot_ended="ibboot.service does not run: $ibboot_unit; see systemctl status ibboot.service"
        ;;
esac
unset ibboot_unit
