#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# netroot, sourced by /sbin/netroot before it mounts the root file system: if the root file system
# comes over a link of ibboot, netroot must not run when another network module's interface is up.
# It runs after the verdict (netroot.sh).

[ -e /run/ibboot/hold ] && [ -z "$IBBOOT_TURN" ] || return 0
# An interface that is brought up by hand mounts nothing.
# shellcheck disable=SC2154
[ -n "$handler" ] || return 0
# shellcheck disable=SC2154
: > "/run/ibboot/held-$netif"
exit 0
