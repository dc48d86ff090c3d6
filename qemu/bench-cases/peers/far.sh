# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A subnet manager at once or, where the command line says so, some seconds after the kernel's start.

. /run/ibboot-fabric/lib.sh
at=$(sed -n 's/.*ibboot-bench.sm=\([0-9]*\).*/\1/p' /proc/cmdline)
[ -z "$at" ] || wait_for 120 "[ \$(cut -d. -f1 /proc/uptime) -ge $at ]"
say "the subnet manager starts"
fabric sm start
