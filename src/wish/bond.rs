// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what can be requested of a bond of IPoIB interfaces, and what sysfs shows of one.
//!
//! Source: drivers/net/bonding/bond_main.c (bond_enslave), bond_options.c.

use serde::{Deserialize, Serialize};

/// The only mode in which the kernel accepts InfiniBand interfaces: their address cannot be set.
pub const MODE: &str = "active-backup";
/// Options that the kernel accepts only once their interface is in the bond.
const AFTER_SLAVES: [&str; 2] = ["primary", "active_slave"];

/// The options that the driver has in sysfs (drivers/net/bonding/bond_sysfs.c, Linux 6.12).
pub const OPTIONS: [&str; 31] = [
    "active_slave",
    "ad_actor_sys_prio",
    "ad_actor_system",
    "ad_select",
    "ad_user_port_key",
    "all_slaves_active",
    "arp_all_targets",
    "arp_interval",
    "arp_ip_target",
    "arp_missed_max",
    "arp_validate",
    "downdelay",
    "fail_over_mac",
    "lacp_active",
    "lacp_rate",
    "lp_interval",
    "miimon",
    "min_links",
    "mode",
    "num_grat_arp",
    "num_unsol_na",
    "packets_per_slave",
    "peer_notif_delay",
    "primary",
    "primary_reselect",
    "resend_igmp",
    "tlb_dynamic_lb",
    "updelay",
    "use_carrier",
    "xmit_hash_policy",
    "queue_id",
];

/// What is requested of a bond in addition to what is requested of any interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondWish {
    /// The names of its interfaces in the wishes.
    pub slaves: Vec<String>,
    /// Options of the driver and their values, without the mode.
    pub options: Vec<(String, String)>,
}

/// What sysfs shows of a bond.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondFacts {
    /// Its interfaces.
    pub slaves: Vec<String>,
    /// The interface that carries the traffic.
    pub active_slave: Option<String>,
    /// Options as the driver writes them: `mode=active-backup 1`, `miimon=100`.
    pub options: Vec<String>,
}

impl BondFacts {
    /// The option as the driver writes it.
    pub fn option(&self, option: &str) -> Option<&str> {
        let mut options = self.options.iter().filter_map(|o| o.split_once('='));
        options.find(|(name, _)| *name == option).map(|(_, v)| v)
    }

    /// Whether the option has the value from the command line. The driver shows the name and the
    /// number of a value that has both, and separates the addresses of a list with spaces.
    pub fn has(&self, option: &str, expected: &str) -> bool {
        let Some(found) = self.option(option) else {
            return false;
        };
        let words: Vec<&str> = found.split_ascii_whitespace().collect();
        let expected: Vec<&str> = expected.split(';').collect();
        match (words.as_slice(), expected.as_slice()) {
            ([name, number], [one]) => name == one || number == one,
            (found, expected) => found == expected,
        }
    }

    /// The options that differ and can be set now, in the order of the command line.
    pub fn to_set<'w>(&self, wish: &'w BondWish) -> Vec<&'w (String, String)> {
        let now = |option: &str| !AFTER_SLAVES.contains(&option) || !self.slaves.is_empty();
        let options = wish.options.iter();
        options
            .filter(|(option, value)| now(option) && !self.has(option, value))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(options: &[(&str, &str)]) -> BondFacts {
        BondFacts {
            options: options
                .iter()
                .map(|(option, value)| format!("{option}={value}"))
                .collect(),
            ..BondFacts::default()
        }
    }

    #[test]
    fn an_option_is_read_as_the_driver_writes_it() {
        let bond = found(&[
            ("mode", "active-backup 1"),
            ("miimon", "100"),
            ("arp_ip_target", "10.0.0.1 10.0.0.2"),
            ("primary", ""),
        ]);
        assert!(bond.has("mode", "active-backup"));
        assert!(bond.has("mode", "1"));
        assert!(!bond.has("mode", "balance-rr"));
        assert!(bond.has("miimon", "100"));
        assert!(!bond.has("miimon", "10"));
        assert!(bond.has("arp_ip_target", "10.0.0.1;10.0.0.2"));
        assert!(!bond.has("primary", "ib0"));
        assert!(!bond.has("none", "1"));
    }

    #[test]
    fn primary_waits_for_its_interface() {
        let wish = BondWish {
            slaves: vec!["ib0".to_owned()],
            options: vec![
                ("primary".to_owned(), "ib0".to_owned()),
                ("miimon".to_owned(), "50".to_owned()),
            ],
        };
        let mut bond = found(&[("miimon", "0"), ("primary", "")]);
        let names = |bond: &BondFacts| -> Vec<String> {
            bond.to_set(&wish).iter().map(|(o, _)| o.clone()).collect()
        };
        assert_eq!(names(&bond), ["miimon"]);
        bond.slaves.push("ib0".to_owned());
        assert_eq!(names(&bond), ["primary", "miimon"]);
    }
}
