// SPDX-License-Identifier: MIT OR Apache-2.0
//! dracut's hooks, sourced by a shell in a mount namespace with its own /proc, /dev and /run.
//! Needs root; without root each test reports that it was skipped.

#![allow(clippy::unwrap_used)]

mod request;
#[path = "../skip/mod.rs"]
mod skip;
mod stage;
mod turns;
mod verdict;

use stage::plays;

/// The parts of module-setup.sh that select files, with dracut's functions replaced by echo.
#[test]
fn site_settings_go_by_normal_driver_names() {
    plays(
        "site settings",
        "mount -t tmpfs etc /etc; mkdir -p /etc/modprobe.d; dracutsysrootdir=''
        site() { echo \"$2\" > \"/etc/modprobe.d/$1.conf\"; }
        site dashed 'options ib-ipoib recv_queue_size=1024'; site added 'options my-hca debug=1'
        site listed 'softdep odd_hca pre: x'; site irdma 'options irdma limits_sel=5'
        site class 'options drivers x=1'; site any 'options e1000e x=1'; site plus 'options xx y=1'
        cat > /run/site.sh <<'END'
        . \"$1/module-setup.sh\"
        inst_multiple() { echo \"${1#/etc/modprobe.d/}\"; }
        shopt -s nullglob
        ibboot_drivers='ib-ipoib =drivers/infiniband x+ odd-hca' add_drivers=' my_hca .* '
        install_site_settings | grep -v / | sort
END
        bash /run/site.sh \"$hooks\"",
        "added.conf\ndashed.conf\nirdma.conf\nlisted.conf\n",
    );
}
