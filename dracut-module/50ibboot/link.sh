#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Before dracut-cmdline.service (cmdline.conf): adds ibboot's hooks of the stages cmdline and cleanup.

ibboot_hooks=/lib/dracut/hooks
ln -sf /usr/lib/ibboot/cmdline.sh "$ibboot_hooks/cmdline/93-cmdline.sh" \
    && ln -sf /usr/lib/ibboot/zz-ibboot-complete.sh "$ibboot_hooks/cmdline/99-zz-ibboot-complete.sh" \
    && ln -sf /usr/lib/ibboot/cleanup.sh "$ibboot_hooks/cleanup/05-cleanup.sh" \
    || {
        ibboot_reason="ibboot: the hooks of ibboot cannot be added to $ibboot_hooks: this boot does not wait for the links"
        { [ -e /dev/kmsg ] && echo "<3>$ibboot_reason" > /dev/kmsg; } 2> /dev/null || echo "$ibboot_reason" > /dev/console
    }
