// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is set on one network interface, and the request to the kernel that sets it.

use std::fmt;
use std::net::IpAddr;

use crate::error::{Error, errno_text};
use crate::inet::{Address, Route};
use crate::system::net::Net;
use crate::system::root::Root;
use crate::wish::bond::MODE;
use crate::wish::ipoib::{FULL_MEMBER, Mode};

/// What is set on a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A child for this P_Key is made.
    CreateChild(u16),
    /// The interface is renamed.
    Rename(String),
    /// The transport mode of IPoIB.
    Mode(Mode),
    /// A setting of IPv6 below `/proc/sys/net/ipv6/conf/IF`, and its value.
    Sysctl(&'static str, &'static str),
    /// Administratively up.
    Up,
    /// Administratively down: a bond before its mode is set, an interface before it goes into its bond.
    Down,
    /// The bond of this name is made.
    MakeBond,
    /// An option of a bond.
    BondOption {
        /// Name of its file.
        option: String,
        /// Value; the addresses of a list with `;` between them.
        value: String,
        /// How many interfaces the bond has: what the driver refuses it may take with one more.
        slaves: usize,
    },
    /// The interface goes into this bond.
    Enslave {
        /// Name of the bond.
        bond: String,
        /// Its interface index.
        index: u32,
    },
    /// MTU in bytes.
    Mtu(u32),
    /// An address is set, with the other end of a point-to-point link where there is one.
    AddAddress(Address, Option<IpAddr>),
    /// An address goes.
    RemoveAddress(Address),
    /// A route is set; that to 0.0.0.0/0 or ::/0 over a gateway is a default gateway.
    AddRoute(Route),
    /// A route goes.
    RemoveRoute(Route),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::CreateChild(pkey) => write!(f, "make the child of P_Key {pkey:#06x}"),
            Setting::Rename(name) => write!(f, "rename to {name}"),
            Setting::Mode(mode) => write!(f, "set mode {mode}"),
            Setting::Sysctl(name, value) => write!(f, "set IPv6 {name} to {value}"),
            Setting::Up => f.write_str("set up"),
            Setting::Down => f.write_str("set down"),
            Setting::MakeBond => write!(f, "make the bond, {MODE}"),
            Setting::BondOption { option, value, .. } => write!(f, "set option {option}={value}"),
            Setting::Enslave { bond, .. } => write!(f, "put into {bond}"),
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

/// A route in words, a default gateway by that name.
pub fn route_text(route: &Route) -> String {
    match route.gateway {
        Some(gateway) if route.network.prefix == 0 => format!("default gateway {gateway}"),
        _ => format!("route {route}"),
    }
}

/// The network of a route, as [`Net`] takes it: none for that of a default gateway.
fn network(route: &Route) -> Option<Address> {
    let is_default = route.network.prefix == 0 && route.gateway.is_some();
    (!is_default).then_some(route.network)
}

impl Setting {
    /// Applies the setting to the interface `name` with this index. [`Error::seen`] is the kernel's
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
        set.map_err(|why| self.refused(name).seen(why))
    }

    /// What it means that the kernel refuses.
    fn refused(&self, name: &str) -> Error {
        let error = |what: String| Error::new(name, what);
        match self {
            Setting::Rename(to) => error(format!("cannot be renamed to {to}")).hint(
                "kernels before 6.2 rename only what is down: load ib_ipoib no earlier than ibboot does",
            ),
            Setting::MakeBond => error("bond cannot be made".to_owned()),
            Setting::Down | Setting::Enslave { .. } => {
                error("cannot be put into its bond".to_owned()).hint("see dmesg")
            }
            Setting::Mtu(bytes) => error(format!("MTU {bytes} is refused")),
            Setting::AddAddress(address, _) => error(format!("address {address} cannot be set")),
            Setting::AddRoute(route) => error(format!("{} cannot be set", route_text(route))),
            other => error(format!("cannot {other}")),
        }
    }
}

/// The P_Key as `create_child` takes it. Full membership always: the kernel compares before it sets
/// the bit, and would make a second child for the limited spelling of the same partition
/// (ipoib_vlan.c).
fn create_child(root: &Root, parent: &str, pkey: u16) -> Result<(), Error> {
    let pkey = format!("{:#06x}", pkey | FULL_MEMBER);
    let path = format!("/sys/class/net/{parent}/create_child");
    root.set(&path, &format!("{pkey}\n")).map_err(|e| {
        let hint = if e.raw_os_error() == Some(libc::ENOTUNIQ) {
            "an interface with this P_Key is there already: look at ip -d link"
        } else {
            "see dmesg"
        };
        Error::io(&path, format!("child of P_Key {pkey} cannot be made"), &e).hint(hint)
    })
}

/// Writes the mode and reads it back: the kernel reports some failures as success
/// (ipoib_main.c, ipoib_set_mode, -EBUSY).
fn set_mode(root: &Root, ifname: &str, mode: Mode) -> Result<(), Error> {
    let path = format!("/sys/class/net/{ifname}/mode");
    // The newline is part of the word (ipoib_set_mode compares with it).
    let word = format!("{mode}\n");
    let fail = |why: String| {
        Error::new(ifname, "mode cannot be set")
            .seen(why)
            .wanted(mode.word())
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
    Err(fail("the kernel did not take it".to_owned()))
}

fn set_sysctl(root: &Root, ifname: &str, setting: &str, value: &str) -> Result<(), Error> {
    let path = sysctl(ifname, setting);
    root.set(&path, &format!("{value}\n")).map_err(|e| {
        Error::io(&path, format!("cannot be set to {value}"), &e)
            .hint("is IPv6 in this kernel (ipv6.disable=)?")
    })
}

/// Where the kernel has a setting of IPv6.
pub(super) fn sysctl(ifname: &str, setting: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{ifname}/{setting}")
}

/// The driver takes the addresses of a list one by one; all are tried.
fn set_option(root: &Root, bond: &str, option: &str, value: &str) -> Result<(), Error> {
    let path = format!("/sys/class/net/{bond}/bonding/{option}");
    let sign = if option.ends_with("_target") { "+" } else { "" };
    let set = |part: &str| {
        root.set(&path, &format!("{sign}{part}\n")).map_err(|e| {
            Error::io(bond, format!("option {option}={value} is refused"), &e)
                .hint("see dmesg; modinfo bonding lists the options")
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
            "/sys/class/net/ib1/create_child: child of P_Key 0x8001 cannot be made: \
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
             see dmesg; modinfo bonding lists the options"
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
