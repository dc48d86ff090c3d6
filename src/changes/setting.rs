// SPDX-License-Identifier: MIT OR Apache-2.0
//! A setting of one network interface, and the request to the kernel that applies it.

use std::fmt;
use std::net::IpAddr;

use crate::error::{Error, errno_text};
use crate::inet::{Address, Route};
use crate::system::net::Net;
use crate::system::root::Root;
use crate::wish::bond::MODE;
use crate::wish::ipoib::{FULL_MEMBER, Mode};

/// A setting of a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// Create a child for this P_Key.
    CreateChild(u16),
    /// Rename the interface.
    Rename(String),
    /// Set the transport mode of IPoIB.
    Mode(Mode),
    /// Write an IPv6 setting below `/proc/sys/net/ipv6/conf/IF`.
    Sysctl(&'static str, &'static str),
    /// Set administratively up.
    Up,
    /// Set administratively down: a bond before its mode is set, a slave before it joins its bond.
    Down,
    /// Create the bond of this name.
    MakeBond,
    /// Set an option of a bond.
    BondOption {
        /// File name of the option.
        option: String,
        /// Value; `;` separates the addresses of a list.
        value: String,
        /// Number of slaves of the bond: the driver may accept a refused option after another slave
        /// has joined.
        slaves: usize,
    },
    /// Add the interface to a bond.
    Enslave {
        /// Name of the bond.
        bond: String,
        /// Interface index of the bond.
        index: u32,
    },
    /// Set the MTU in bytes.
    Mtu(u32),
    /// Add an address, on a point-to-point link with the peer's address.
    AddAddress(Address, Option<IpAddr>),
    RemoveAddress(Address),
    /// Add a route; a route to 0.0.0.0/0 or ::/0 through a gateway is a default gateway.
    AddRoute(Route),
    RemoveRoute(Route),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::CreateChild(pkey) => write!(f, "create the child for P_Key {pkey:#06x}"),
            Setting::Rename(name) => write!(f, "rename to {name}"),
            Setting::Mode(mode) => write!(f, "set mode {mode}"),
            Setting::Sysctl(name, value) => write!(f, "set IPv6 {name} to {value}"),
            Setting::Up => f.write_str("set up"),
            Setting::Down => f.write_str("set down"),
            Setting::MakeBond => write!(f, "create the bond, mode {MODE}"),
            Setting::BondOption { option, value, .. } => write!(f, "set option {option}={value}"),
            Setting::Enslave { bond, .. } => write!(f, "add to {bond}"),
            Setting::Mtu(bytes) => write!(f, "set MTU {bytes}"),
            Setting::AddAddress(address, None) => write!(f, "set address {address}"),
            Setting::AddAddress(address, Some(peer)) => {
                write!(f, "set address {address}, peer {peer}")
            }
            Setting::RemoveAddress(address) => write!(f, "remove address {address}"),
            Setting::AddRoute(route) => write!(f, "set {}", route_text(route)),
            Setting::RemoveRoute(route) => write!(f, "remove {}", route_text(route)),
        }
    }
}

/// Text of a route; a default route through a gateway is called default gateway.
pub fn route_text(route: &Route) -> String {
    match route.gateway {
        Some(gateway) if route.network.prefix == 0 => format!("default gateway {gateway}"),
        _ => format!("route {route}"),
    }
}

/// The network of a route in the form of [`Net`]: none for a default gateway.
fn network(route: &Route) -> Option<Address> {
    let is_default = route.network.prefix == 0 && route.gateway.is_some();
    (!is_default).then_some(route.network)
}

impl Setting {
    /// Applies the setting to the interface `name` with this index. [`Error::found`] is the kernel's
    /// answer.
    pub async fn apply(&self, name: &str, index: u32, root: &Root, net: &Net) -> Result<(), Error> {
        let set = match self {
            Setting::CreateChild(pkey) => return create_child(root, name, *pkey),
            Setting::Mode(mode) => return set_mode(root, name, *mode),
            Setting::Sysctl(setting, value) => return set_sysctl(root, name, setting, value),
            Setting::BondOption { option, value, .. } => {
                return set_option(root, name, option, value);
            }
            Setting::Up => return net.set_up(name, index).await,
            Setting::Rename(name) => net.rename(index, name).await,
            Setting::Down => net.set_down(index).await,
            Setting::MakeBond => net.add_bond(name).await,
            Setting::Enslave { index: bond, .. } => net.enslave(index, *bond).await,
            Setting::Mtu(bytes) => net.set_mtu(index, *bytes).await,
            Setting::AddAddress(own, peer) => {
                net.add_address(index, own.address, own.prefix, *peer).await
            }
            Setting::RemoveAddress(own) => {
                net.delete_address(index, own.address, Some(own.prefix))
                    .await
            }
            Setting::AddRoute(route) => net.add_route(index, network(route), route.gateway).await,
            Setting::RemoveRoute(route) => {
                net.delete_route(index, network(route), route.gateway).await
            }
        };
        set.map_err(|why| self.refused(name).found(why))
    }

    /// The error for a setting that the kernel refuses.
    fn refused(&self, name: &str) -> Error {
        let error = |what: String| Error::new(name, what);
        match self {
            Setting::Rename(to) => error(format!("cannot be renamed to {to}")).hint(
                "kernels before 6.2 rename an interface only while it is down: do not load ib_ipoib before ibboot does",
            ),
            Setting::MakeBond => error("bond cannot be created".to_owned()),
            Setting::Down => error("cannot be set down".to_owned()).hint("see dmesg"),
            Setting::Enslave { bond, .. } => {
                error(format!("cannot be added to {bond}")).hint("see dmesg")
            }
            Setting::Mtu(bytes) => error(format!("MTU {bytes} is refused")),
            Setting::AddAddress(address, _) => error(format!("address {address} cannot be set")),
            Setting::AddRoute(route) => error(format!("{} cannot be set", route_text(route))),
            other => error(format!("cannot {other}")),
        }
    }
}

/// Writes the P_Key to `create_child`, always as full member: the kernel compares the P_Key before
/// it sets the membership bit, and would create a second child for the limited spelling of the same
/// partition (ipoib_vlan.c).
fn create_child(root: &Root, parent: &str, pkey: u16) -> Result<(), Error> {
    let pkey = format!("{:#06x}", pkey | FULL_MEMBER);
    let path = format!("/sys/class/net/{parent}/create_child");
    root.set(&path, &format!("{pkey}\n")).map_err(|e| {
        let hint = if e.raw_os_error() == Some(libc::ENOTUNIQ) {
            "an interface with this P_Key already exists: see `ip -d link`"
        } else {
            "see dmesg"
        };
        Error::io(
            &path,
            format!("child for P_Key {pkey} cannot be created"),
            &e,
        )
        .hint(hint)
    })
}

/// Writes the mode and reads it back: the kernel reports some failures as success (ipoib_main.c,
/// ipoib_set_mode, -EBUSY).
fn set_mode(root: &Root, ifname: &str, mode: Mode) -> Result<(), Error> {
    let path = format!("/sys/class/net/{ifname}/mode");
    // The newline is part of the text (ipoib_set_mode compares it).
    let word = format!("{mode}\n");
    let fail = |why: String| {
        Error::new(ifname, "mode cannot be set")
            .found(why)
            .expected(mode.word())
            .hint("see dmesg")
    };
    for _ in 0..3 {
        match root.set(&path, &word) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(fail(errno_text(&e))),
            Ok(()) => {}
        }
        let after = root.text(&path).map_err(|e| fail(errno_text(&e)))?;
        if after == mode.word() {
            return Ok(());
        }
    }
    Err(fail("the kernel did not accept the mode".to_owned()))
}

fn set_sysctl(root: &Root, ifname: &str, setting: &str, value: &str) -> Result<(), Error> {
    let path = sysctl(ifname, setting);
    root.set(&path, &format!("{value}\n")).map_err(|e| {
        Error::io(&path, format!("cannot be set to {value}"), &e)
            .hint("check whether this kernel has IPv6 (ipv6.disable=)")
    })
}

/// Path of an IPv6 setting.
pub(super) fn sysctl(ifname: &str, setting: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{ifname}/{setting}")
}

/// Sets an option of a bond. The driver accepts the addresses of a list one at a time; all are
/// tried.
fn set_option(root: &Root, bond: &str, option: &str, value: &str) -> Result<(), Error> {
    let path = format!("/sys/class/net/{bond}/bonding/{option}");
    let sign = if option.ends_with("_target") { "+" } else { "" };
    let set = |part: &str| {
        root.set(&path, &format!("{sign}{part}\n")).map_err(|e| {
            Error::io(bond, format!("option {option}={value} is refused"), &e)
                .hint("see dmesg; `modinfo bonding` lists the options")
        })
    };
    value.split(';').map(set).fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_written_with_its_newline_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sys/class/net/ib0/mode");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "datagram\n").unwrap();
        let root = Root::new(dir.path());
        assert_eq!(set_mode(&root, "ib0", Mode::Connected), Ok(()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "connected\n");
        assert_eq!(
            set_mode(&root, "ib1", Mode::Connected)
                .unwrap_err()
                .to_string(),
            "ib1: mode cannot be set: No such file or directory, expected connected; see dmesg"
        );
    }

    #[test]
    fn a_child_is_a_full_member_and_each_target_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let net = dir.path().join("sys/class/net");
        std::fs::create_dir_all(net.join("ib0/bonding")).unwrap();
        for file in ["ib0/create_child", "ib0/bonding/arp_ip_target"] {
            std::fs::write(net.join(file), "").unwrap();
        }
        let root = Root::new(dir.path());
        let text = |file: &str| std::fs::read_to_string(net.join(file)).unwrap();
        assert_eq!(create_child(&root, "ib0", 1), Ok(()));
        assert_eq!(text("ib0/create_child"), "0x8001\n");
        assert_eq!(
            create_child(&root, "ib1", 1).unwrap_err().to_string(),
            "/sys/class/net/ib1/create_child: child for P_Key 0x8001 cannot be created: \
             No such file or directory; see dmesg"
        );
        let (option, both) = ("arp_ip_target", "10.0.0.1;10.0.0.2");
        assert_eq!(set_option(&root, "ib0", option, both), Ok(()));
        assert!(text("ib0/bonding/arp_ip_target").starts_with("+10.0.0.2\n"));
        assert_eq!(
            set_option(&root, "ib0", "miimon", "1")
                .unwrap_err()
                .to_string(),
            "ib0: option miimon=1 is refused: No such file or directory; \
             see dmesg; `modinfo bonding` lists the options"
        );
    }

    #[test]
    fn the_default_route_over_a_gateway_has_no_network() {
        let route = |network: &str, prefix, gateway: Option<&str>| Route {
            network: Address {
                address: network.parse().unwrap(),
                prefix,
            },
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        };
        let default = route("::", 0, Some("fd00::1"));
        assert_eq!(network(&default), None);
        assert_eq!(route_text(&default), "default gateway fd00::1");
        let direct = route("::", 0, None);
        assert_eq!(network(&direct), Some(direct.network));
        let other = route("10.9.0.0", 16, Some("10.0.0.1"));
        assert_eq!(network(&other), Some(other.network));
        assert_eq!(route_text(&other), "route 10.9.0.0/16 via 10.0.0.1");
    }
}
