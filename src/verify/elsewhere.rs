// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: an RDMA device that is not there under the requested name, and may be there under another.

use super::checks::Id;
use crate::facts::{Device, Facts, select};
use crate::rdma::types::LinkLayer;
use crate::system::drivers::{self, Family};
use crate::verify::finding::Finding;
use crate::wish::expectation::LinkWish;
use crate::wish::selector::Means;

/// Maximum of device names in one line.
const SHOWN: usize = 8;

/// The finding about a device that is named as its driver names devices (`mlx5_0`), while the
/// machine has devices with other names, or the other way round; none if another finding tells more.
pub fn finding(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    if let Some(found) = not_renamed(wish, facts) {
        return Some(found);
    }
    let absent = Absent::of(wish, facts)?;
    let family = drivers::by_device_name(absent.device);
    let is_renamed = |device: &&Device| {
        let name = device.ifname.as_str();
        let has_driver = |family: &Family| {
            device
                .driver
                .as_deref()
                .is_some_and(|d| family.pci.contains(&d))
        };
        is_of_udev(name) || (family.is_some_and(has_driver) && !drivers::is_kernels_name(name))
    };
    let devices = facts.devices.iter().filter(is_renamed);
    let names: Vec<&str> = devices.map(|d| d.ifname.as_str()).take(SHOWN).collect();
    let hint = "udev renames RDMA devices (60-rdma-persistent-naming.rules): use one of these names, guid= or pci=";
    (!names.is_empty()).then(|| absent.finding(&names, hint))
}

/// The finding about a device that a RoCE bond replaced.
pub fn bonded(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    let bond = bond_of(wish, facts)?;
    let (target, name) = (wish.target.as_str(), bond.ifname.as_str());
    let found = format!("this machine has no {target}, only {name}");
    let finding = |found: &str| Finding::failed(Id::DevicePresent, found, target);
    let Some(joined) = select::joined_bond(wish, facts) else {
        return Some(finding(&found).hint(&format!(
            "{name} is a bond of Ethernet ports of one card, which replaces their devices: name {name}"
        )));
    };
    Some(match joined.netdev {
        Some(netdev) => finding(&format!("{found}, and {} has no carrier", netdev.ifname))
            .hint("check the cable, the transceiver and the switch port of this interface"),
        None => finding(&format!("{found}, and its interface is in no bond"))
            .hint("see the interfaces of the bond (ip -d link)"),
    })
}

/// The RoCE bond that has the port of the wish. A pinned port is known by its address; of a port that was
/// never there only the number is known, and a card that failed may have had it.
fn bond_of<'f>(wish: &LinkWish, facts: &'f Facts) -> Option<&'f Device> {
    if wish.identity.is_some() {
        return facts.roce_bond(wish.bus_address.as_deref()?);
    }
    if let Means::Pci(address) = wish.selector()?.means() {
        return facts.roce_bond(&address.to_string());
    }
    let absent = Absent::of(wish, facts)?;
    let functions = facts.functions.iter();
    // A device has the least number that is free.
    let most = facts.devices.len() + functions.filter(|one| one.devices.is_empty()).count();
    let is_possible = absent.number < most
        && wish.link_layer != Some(LinkLayer::InfiniBand)
        && facts.bare_functions().is_empty();
    let is_bond = |device: &&Device| {
        let driver = device.ifname.split_once("_bond_").map(|(driver, _)| driver);
        driver == Some(absent.driver)
    };
    facts.devices.iter().find(is_bond).filter(|_| is_possible)
}

/// The finding about a device with a name from udev, while all devices have their names from the kernel:
/// an initramfs may lack udev's rules for them.
fn not_renamed(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    let selector = wish.selector()?;
    let device = match selector.means() {
        Means::Name(device) | Means::Port { device, .. } => device.as_str(),
        Means::Guid(_) | Means::Pci(_) => return None,
    };
    let names: Vec<&str> = facts.devices.iter().map(|d| d.ifname.as_str()).collect();
    let is_meant = is_of_udev(device) && wish.ipoib.is_none() && wish.netdev.is_none();
    if !is_meant || names.is_empty() || !names.iter().all(|name| drivers::is_kernels_name(name)) {
        return None;
    }
    let shown: Vec<&str> = names.iter().copied().take(SHOWN).collect();
    let found = format!("this machine has no {device}, only {}", shown.join(", "));
    let hint = "the devices have their names from the kernel: udev renames them only with the rules of rdma-core, \
                which an initramfs may lack (60-rdma-persistent-naming.rules); use guid= or pci=";
    // IPoIB interfaces have such names, too.
    let hint = match device.starts_with("ib") {
        true => format!("{hint}; for the interface {device} check that ib_ipoib is loaded"),
        false => hint.to_owned(),
    };
    Some(Finding::failed(Id::DevicePresent, &found, selector.as_str()).hint(&hint))
}

/// Whether rdma-core's rules give such names (kernel-boot/rdma_rename.c: by bus address, slot, onboard
/// number or GUID), or those of the images for Azure (`mlx5_ib0`, `mlx5_an0`).
fn is_of_udev(device: &str) -> bool {
    let mut links = ["ib", "roce", "iw", "opa", "rdma"].into_iter();
    let rest = links.find_map(|link| device.strip_prefix(link));
    let mut azure = ["mlx5_ib", "mlx5_an"].into_iter();
    rest.is_some_and(|rest| rest.starts_with(['p', 'P', 's', 'o', 'x']))
        || azure.any(|prefix| device.starts_with(prefix))
}

/// A device that a wish names as its driver names devices, and that does not exist.
struct Absent<'a> {
    name: &'a str,
    device: &'a str,
    driver: &'a str,
    number: usize,
}

impl<'a> Absent<'a> {
    fn of(wish: &'a LinkWish, facts: &'a Facts) -> Option<Absent<'a>> {
        let selector = wish.selector()?;
        let device = match selector.means() {
            Means::Name(device) | Means::Port { device, .. } => device.as_str(),
            Means::Guid(_) | Means::Pci(_) => return None,
        };
        let (driver, number) = device
            .rsplit_once('_')
            .filter(|(driver, _)| !driver.is_empty())?;
        let is_there = facts.devices.iter().any(|one| one.ifname == device);
        (!is_there).then_some(Absent {
            name: selector.as_str(),
            device,
            driver,
            number: number.parse().ok()?,
        })
    }

    fn finding(&self, others: &[&str], hint: &str) -> Finding {
        let found = format!(
            "this machine has no {}, only {}",
            self.device,
            others.join(", ")
        );
        Finding::failed(Id::DevicePresent, &found, self.name).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wish::expectation::Target;

    fn found(target: &str, names: &[&str]) -> Option<String> {
        let device = |name: &&str| Device {
            ifname: (*name).to_owned(),
            ..Device::default()
        };
        let facts = Facts {
            devices: names.iter().map(device).collect(),
            ..Facts::default()
        };
        let wish = LinkWish {
            target: Target::from(target.to_owned()),
            ..LinkWish::default()
        };
        let bonded = bonded(&wish, &facts);
        bonded.or_else(|| finding(&wish, &facts))?.found
    }

    #[test]
    fn a_device_may_be_there_under_another_name() {
        let of = |target, names: &[&str]| found(target, names).unwrap_or_default();
        assert_eq!(
            of("mlx5_0:1", &["mlx5_2", "mlx5_bond_0"]),
            "this machine has no mlx5_0:1, only mlx5_bond_0"
        );
        assert_eq!(of("mlx5_2", &["mlx5_0", "mlx5_bond_0"]), "");
        assert_eq!(of("mlx5_0", &["rxe0", "bnxt_re0", "mlx4_0"]), "");
        assert_eq!(
            of("mlx5_0", &["rxe0", "bnxt_re0", "ibp1s0"]),
            "this machine has no mlx5_0, only ibp1s0"
        );
        assert_eq!(
            of("mlx5_0", &["ibp1s0", "ibp2s0"]),
            "this machine has no mlx5_0, only ibp1s0, ibp2s0"
        );
        assert_eq!(of("mlx5_0", &["mlx5_0", "ibp2s0"]), "");
        assert_eq!(of("mlx5_0", &["mlx5_1"]), "");
        assert_eq!(of("mlx4_0", &["mlx5_bond_0"]), "");
        assert_eq!(of("ibp1s0", &["ibp2s0"]), "");
        assert_eq!(of("pci=0000:81:00.0", &["ibp2s0"]), "");
        assert_eq!(
            of("ibp1s0", &["mlx5_0"]),
            "this machine has no ibp1s0, only mlx5_0"
        );
        assert_eq!(
            of("mlx5_ib0:1", &["mlx5_0"]),
            "this machine has no mlx5_ib0, only mlx5_0"
        );
        assert_eq!(of("ibp1s0", &["mlx5_0", "ibp2s0"]), "");
        assert_eq!(of("ens1f0np0", &["mlx5_0"]), "");
    }
}
