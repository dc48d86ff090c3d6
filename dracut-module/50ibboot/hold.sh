#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# netroot, sourced by /sbin/netroot before it mounts the root file system: where that comes over a link of ours, an
# interface of another network module that is up is no reason to begin. Its turn comes after the verdict (netroot.sh).

[ -e /run/ibboot/hold ] && [ -z "$IBBOOT_TURN" ] || return 0
# Nothing is mounted when an interface is brought up by hand.
# shellcheck disable=SC2154
[ -n "$handler" ] || return 0
# shellcheck disable=SC2154
: > "/run/ibboot/held-$netif"
exit 0
