// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: an RDMA device that is not there under the requested name, and may be there under another.

use super::checks::Id;
use crate::facts::{Device, Facts};
use crate::system::drivers::{self, Family};
use crate::verify::finding::Finding;
use crate::wish::expectation::LinkWish;
use crate::wish::selector::Means;

/// Maximum of device names in one line.
const SHOWN: usize = 8;
/// In the name of a RoCE bond (drivers/infiniband/hw/mlx5/main.c, mlx5_ib_roce_init).
const BOND: &str = "_bond_";

/// The finding about a device that is named as its driver names devices (`mlx5_0`), while the
/// machine has devices with other names, or the other way round; none if another finding tells more.
pub fn finding(wish: &LinkWish, facts: &Facts) -> Option<Finding> {
    if let Some(found) = bonded(wish, facts).or_else(|| not_renamed(wish, facts)) {
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
    let absent = Absent::of(wish, facts)?;
    let bond = format!("{}{BOND}", absent.driver);
    let is_bond = |name: &&str| name.starts_with(&bond);
    let bond = absent.others.iter().copied().find(is_bond)?;
    let hint = format!(
        "{bond} is a bond of two Ethernet ports, which replaces their devices: name {bond}"
    );
    Some(absent.finding(&[bond], &hint))
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
    let found = format!("no {device}, only {}", shown.join(", "));
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
    /// The devices of the machine.
    others: Vec<&'a str>,
}

impl<'a> Absent<'a> {
    fn of(wish: &'a LinkWish, facts: &'a Facts) -> Option<Absent<'a>> {
        let selector = wish.selector()?;
        let device = match selector.means() {
            Means::Name(device) | Means::Port { device, .. } => device.as_str(),
            Means::Guid(_) | Means::Pci(_) => return None,
        };
        let driver = numbered(device)?;
        let others: Vec<&str> = facts.devices.iter().map(|d| d.ifname.as_str()).collect();
        (!others.contains(&device)).then_some(Absent {
            name: selector.as_str(),
            device,
            driver,
            others,
        })
    }

    fn finding(&self, others: &[&str], hint: &str) -> Finding {
        let found = format!("no {}, only {}", self.device, others.join(", "));
        Finding::failed(Id::DevicePresent, &found, self.name).hint(hint)
    }
}

/// The part of a driver's own name before `_NUMBER`.
fn numbered(device: &str) -> Option<&str> {
    let (driver, number) = device.rsplit_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !driver.is_empty()).then_some(driver)
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
        finding(&wish, &facts)?.found
    }

    #[test]
    fn a_device_may_be_there_under_another_name() {
        let of = |target, names: &[&str]| found(target, names).unwrap_or_default();
        assert_eq!(
            of("mlx5_0:1", &["mlx5_2", "mlx5_bond_0"]),
            "no mlx5_0, only mlx5_bond_0"
        );
        assert_eq!(of("mlx5_0", &["rxe0", "bnxt_re0", "mlx4_0"]), "");
        assert_eq!(
            of("mlx5_0", &["rxe0", "bnxt_re0", "ibp1s0"]),
            "no mlx5_0, only ibp1s0"
        );
        assert_eq!(
            of("mlx5_0", &["ibp1s0", "ibp2s0"]),
            "no mlx5_0, only ibp1s0, ibp2s0"
        );
        assert_eq!(of("mlx5_0", &["mlx5_0", "ibp2s0"]), "");
        assert_eq!(of("mlx5_0", &["mlx5_1"]), "");
        assert_eq!(of("mlx4_0", &["mlx5_bond_0"]), "");
        assert_eq!(of("ibp1s0", &["ibp2s0"]), "");
        assert_eq!(of("pci=0000:81:00.0", &["ibp2s0"]), "");
        assert_eq!(of("ibp1s0", &["mlx5_0"]), "no ibp1s0, only mlx5_0");
        assert_eq!(of("mlx5_ib0:1", &["mlx5_0"]), "no mlx5_ib0, only mlx5_0");
        assert_eq!(of("ibp1s0", &["mlx5_0", "ibp2s0"]), "");
        assert_eq!(of("ens1f0np0", &["mlx5_0"]), "");
    }
}
