// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hardware addresses of interfaces, read from sysfs.

use std::io;

use crate::hardware::{HardwareType, unhex};
use crate::system::root::Root;

/// An interface, with the values that a packet socket needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardware {
    /// Interface index.
    pub index: u32,
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Hardware address.
    pub address: Vec<u8>,
    /// Broadcast address. On InfiniBand this address depends on the partition, so no constant fits.
    pub broadcast: Vec<u8>,
}

impl Hardware {
    /// Reads the values of the interface with this name and index. An error if another interface has
    /// the name by now.
    pub fn of(root: &Root, name: &str, index: Option<u32>) -> io::Result<Hardware> {
        let hardware = Hardware::read(root, name)?;
        match index == Some(hardware.index) {
            true => Ok(hardware),
            false => Err(io::Error::other("another interface has this name now")),
        }
    }

    /// Reads the values from sysfs.
    pub fn read(root: &Root, name: &str) -> io::Result<Hardware> {
        let text = |file: &str| root.text(&format!("/sys/class/net/{name}/{file}"));
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let bytes = |file: &str| unhex(&text(file)?).ok_or_else(wrong);
        Ok(Hardware {
            index: text("ifindex")?.parse().map_err(|_| wrong())?,
            hardware_type: text("type")?.parse().map_err(|_| wrong())?,
            address: bytes("address")?,
            broadcast: bytes("broadcast")?,
        })
    }
}

/// The hardware addresses of this machine's interfaces. Linux may answer ARP for an address of one
/// interface with the hardware address of another interface on the same link (ip-sysctl.rst,
/// arp_ignore and arp_announce): such an answer does not come from another host.
pub fn own_addresses(root: &Root) -> Vec<Vec<u8>> {
    const NET: &str = "/sys/class/net";
    let names = root.list(NET).unwrap_or_default();
    let address = |name: &String| root.text(&format!("{NET}/{name}/address")).ok();
    let all = names.iter().filter_map(address);
    all.filter_map(|text| unhex(&text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_another_interface_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join("sys/class/net/ib0");
        std::fs::create_dir_all(&directory).unwrap();
        let values = [
            ("ifindex", "7"),
            ("type", "32"),
            ("address", "80:00:00:02"),
            ("broadcast", "00:ff:ff:ff"),
        ];
        for (file, value) in values {
            std::fs::write(directory.join(file), format!("{value}\n")).unwrap();
        }
        let root = Root::new(tree.path());
        assert_eq!(Hardware::of(&root, "ib0", Some(7)).unwrap().index, 7);
        for index in [Some(4), None] {
            let error = Hardware::of(&root, "ib0", index).unwrap_err();
            assert_eq!(error.to_string(), "another interface has this name now");
        }
    }
}
