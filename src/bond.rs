// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: bonds of IPoIB interfaces: what the kernel allows, and what it shows.
//!
//! Source: drivers/net/bonding/bond_main.c (bond_enslave), bond_options.c.

use crate::facts::Netdev;
use crate::ipoib::{self, WantedMtu};
use crate::request::InterfaceWish;
use kernel_cmdline::Bond;
use serde::{Deserialize, Serialize};

/// The only mode in which the kernel takes InfiniBand interfaces: their address cannot be set.
pub const MODE: &str = "active-backup";
/// Milliseconds between two looks at the links, where nothing else is written: the driver's own
/// default is never to look.
const MIIMON: &str = "100";
/// Options that the kernel takes only once their interface is in the bond.
const AFTER_SLAVES: [&str; 2] = ["primary", "active_slave"];

/// What is wanted of a bond beside what is wanted of any interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// What its interfaces are called in the wishes.
    pub slaves: Vec<String>,
    /// Options of the driver and their values, but for the mode.
    pub options: Vec<(String, String)>,
}

/// What sysfs shows of a bond.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its interfaces.
    pub slaves: Vec<String>,
    /// The one that carries the traffic.
    pub active_slave: Option<String>,
    /// Options as the driver writes them: `mode=active-backup 1`, `miimon=100`.
    pub options: Vec<String>,
}

impl Seen {
    /// The option as the driver writes it.
    pub fn option(&self, option: &str) -> Option<&str> {
        let mut options = self.options.iter().filter_map(|o| o.split_once('='));
        options.find(|(name, _)| *name == option).map(|(_, v)| v)
    }

    /// Whether the option is as it is written on the command line. The driver shows the name and the
    /// number of what has both, and the addresses of a list with spaces between them.
    pub fn has(&self, option: &str, wanted: &str) -> bool {
        let Some(seen) = self.option(option) else {
            return false;
        };
        let words: Vec<&str> = seen.split_ascii_whitespace().collect();
        let wanted: Vec<&str> = wanted.split(';').collect();
        match (words.as_slice(), wanted.as_slice()) {
            ([name, number], [one]) => name == one || number == one,
            (seen, wanted) => seen == wanted,
        }
    }

    /// The options that are not as wanted and can be set now, in the order written.
    pub fn to_set<'w>(&self, wish: &'w Wish) -> Vec<&'w (String, String)> {
        let now = |option: &str| !AFTER_SLAVES.contains(&option) || !self.slaves.is_empty();
        let options = wish.options.iter();
        options
            .filter(|(option, value)| now(option) && !self.has(option, value))
            .collect()
    }
}

/// Everything that one `bond=` means: the bond, and why it cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BondWish {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub bond: Wish,
    /// MTU and addresses.
    pub ipoib: ipoib::Wish,
    /// Why that cannot be.
    pub refused: Option<String>,
    /// Its addresses are left to the image's network module.
    pub left: bool,
}

/// The MTU that the bond gets next: what is wanted of it, or not more than its interfaces have. Each of
/// these may have got less from its broadcast group after it went into the bond.
pub fn mtu_to_set(wanted: Option<WantedMtu>, bond: &Netdev, slaves: &[&Netdev]) -> Option<u32> {
    let target = match wanted {
        Some(WantedMtu::Bytes(bytes)) => Some(bytes),
        Some(WantedMtu::Max) | None => {
            let least = slaves.iter().filter_map(|slave| slave.mtu).min();
            least.filter(|least| bond.mtu.is_some_and(|mtu| *least < mtu))
        }
    };
    target.filter(|target| bond.mtu != Some(*target))
}

/// The wish of one argument. `slaves` are its interfaces as they are called in the wishes, `entry` is
/// what the other arguments want of it, `refused` says why it cannot be had.
pub fn wish(
    bond: &Bond<'_>,
    slaves: Vec<String>,
    entry: Option<InterfaceWish>,
    refused: Option<String>,
) -> BondWish {
    let value_of = |option: &str| {
        let mut options = bond.options.iter().rev();
        options.find(|(name, _)| *name == option).map(|(_, v)| *v)
    };
    let refused = refused.or_else(|| match (value_of("mode"), value_of("fail_over_mac")) {
        (Some(mode), _) if mode != MODE && mode != "1" => Some(format!(
            "mode={mode} is not possible: InfiniBand interfaces keep their hardware addresses, and the kernel \
             takes them in active-backup mode only"
        )),
        (_, Some(policy)) if policy != "active" && policy != "1" => Some(format!(
            "fail_over_mac={policy} is not possible: the kernel sets it to active for InfiniBand interfaces"
        )),
        _ => None,
    });
    let mut options: Vec<(String, String)> = Vec::new();
    for (option, value) in &bond.options {
        options.retain(|(known, _)| known != option);
        if !matches!(*option, "mode" | "fail_over_mac") {
            options.push(((*option).to_owned(), (*value).to_owned()));
        }
    }
    if value_of("miimon").is_none() && value_of("arp_interval").is_none() {
        options.push(("miimon".to_owned(), MIIMON.to_owned()));
    }
    BondWish {
        name: bond.name.to_owned(),
        bond: Wish { slaves, options },
        left: entry.as_ref().is_some_and(|entry| entry.left),
        ipoib: ipoib::Wish {
            // Its interfaces have it.
            mode: None,
            ..entry.map(|entry| entry.ipoib).unwrap_or_default()
        },
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(options: &[(&str, &str)]) -> Seen {
        Seen {
            options: options
                .iter()
                .map(|(option, value)| format!("{option}={value}"))
                .collect(),
            ..Seen::default()
        }
    }

    #[test]
    fn an_option_is_read_as_the_driver_writes_it() {
        let bond = seen(&[
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
    fn a_bond_has_no_larger_mtu_than_its_interfaces() {
        let netdev = |mtu: u32| Netdev {
            mtu: Some(mtu),
            ..Netdev::default()
        };
        let (bond, one, other) = (netdev(4092), netdev(4092), netdev(2044));
        let slaves = [&one, &other];
        assert_eq!(mtu_to_set(None, &bond, &slaves), Some(2044));
        let max = Some(WantedMtu::Max);
        assert_eq!(mtu_to_set(max, &bond, &slaves), Some(2044));
        assert_eq!(mtu_to_set(max, &bond, &[&one]), None);
        assert_eq!(mtu_to_set(max, &other, &[&one]), None);
        let bytes = Some(WantedMtu::Bytes(4092));
        assert_eq!(mtu_to_set(bytes, &bond, &slaves), None);
        assert_eq!(mtu_to_set(bytes, &other, &slaves), Some(4092));
    }

    #[test]
    fn primary_waits_for_its_interface() {
        let wish = Wish {
            slaves: vec!["ib0".to_owned()],
            options: vec![
                ("primary".to_owned(), "ib0".to_owned()),
                ("miimon".to_owned(), "50".to_owned()),
            ],
        };
        let mut bond = seen(&[("miimon", "0"), ("primary", "")]);
        let names = |bond: &Seen| -> Vec<String> {
            bond.to_set(&wish).iter().map(|(o, _)| o.clone()).collect()
        };
        assert_eq!(names(&bond), ["miimon"]);
        bond.slaves.push("ib0".to_owned());
        assert_eq!(names(&bond), ["primary", "miimon"]);
    }
}
