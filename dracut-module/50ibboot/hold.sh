#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# netroot, sourced by /sbin/netroot before it mounts the root file system: if the root file system
# comes over a link of ibboot, netroot must not run when another network module's interface is up.
# It runs after the verdict (netroot.sh). Nor must it run beside a netroot of ibboot: a handler that
# downloads or unpacks expects to be alone.

[ -z "$IBBOOT_TURN" ] || return 0
ibboot_attempt=''
# shellcheck disable=SC2154
case $netroot in
    # These neither download nor unpack, and over a broken path they may never return.
    nfs:* | nfs4:* | cifs:* | smb:* | iscsi:* | nbd:* | fcoe:*) ;;
    *) [ ! -e /run/ibboot/netroot ] || read -r ibboot_attempt _ < /run/ibboot/netroot ;;
esac
[ -e /run/ibboot/hold ] || [ "$ibboot_attempt" = running ] || return 0
# An interface that is brought up by hand mounts nothing.
# shellcheck disable=SC2154
[ -n "$handler" ] || return 0
# shellcheck disable=SC2154
: > "/run/ibboot/held-$netif"
exit 0
