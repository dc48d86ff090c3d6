// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions by vendor, device and class (/sys/bus/pci/devices; the classes are those of
//! include/linux/pci_ids.h).

use super::drivers;
use super::root::Root;

/// The directory of all PCI functions.
pub const PCI: &str = "/sys/bus/pci/devices";

/// Vendor, device and class of a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciId {
    /// Vendor: 0x15b3 is NVIDIA (Mellanox).
    pub vendor: u32,
    pub device: u32,
    /// Base class and subclass: 0x0207 is an InfiniBand controller.
    pub class: u16,
}

impl PciId {
    /// Parses `pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00` (drivers/pci/pci-sysfs.c,
    /// modalias_show).
    pub fn parse(modalias: &str) -> Option<PciId> {
        let (vendor, rest) = hexadecimal(modalias.strip_prefix("pci:v")?, 8)?;
        let (device, rest) = hexadecimal(rest.strip_prefix('d')?, 8)?;
        let (_, rest) = hexadecimal(rest.strip_prefix("sv")?, 8)?;
        let (_, rest) = hexadecimal(rest.strip_prefix("sd")?, 8)?;
        let (base, rest) = hexadecimal(rest.strip_prefix("bc")?, 2)?;
        let (sub, _) = hexadecimal(rest.strip_prefix("sc")?, 2)?;
        Some(PciId {
            vendor,
            device,
            class: u16::try_from(base << 8 | sub).ok()?,
        })
    }

    /// The PCI driver of an RDMA card, as [`drivers::by_pci_id`]: of a network controller (base
    /// class 02) or an InfiniBand controller on the serial bus. Cards of the same vendors also have
    /// bridges, and disks that a DPU emulates, with numbers of the same ranges.
    pub fn driver(self) -> Option<&'static str> {
        const NETWORK: u16 = 0x02;
        let is_network = self.class >> 8 == NETWORK || self.is_rdma();
        drivers::by_pci_id(self.vendor, self.device).filter(|_| is_network)
    }

    /// Whether the card shows only what burns its firmware (pci.ids, "Flash Recovery"; the class is no
    /// longer that of a network controller). Models without InfiniBand are not among them.
    pub fn is_in_recovery(self) -> bool {
        const MODELS: [u32; 20] = [
            0x0191, 0x01f6, 0x01f8, 0x01ff, 0x0209, 0x020d, 0x020f, 0x0210, 0x0211, 0x0214, 0x0215,
            0x0218, 0x0219, 0x021c, 0x021d, 0x021e, 0x021f, 0x0220, 0x0221, 0x0224,
        ];
        self.is_of_nvidia() && MODELS.contains(&self.device)
    }

    /// Whether the vendor is NVIDIA (Mellanox).
    pub fn is_of_nvidia(self) -> bool {
        self.vendor == 0x15b3
    }

    /// True for the classes that only RDMA cards have: InfiniBand controllers on the network (0207)
    /// and on the serial bus (0c06), and for the Omni-Path card CN5000, which has the driver hfi2 or
    /// its manufacturer's hfi1. False for the Data Direct function of a ConnectX-8, an InfiniBand
    /// controller that mlx5_ib binds as a path to memory and that never has an RDMA device
    /// (drivers/infiniband/hw/mlx5/data_direct.c).
    pub fn is_rdma(self) -> bool {
        const DATA_DIRECT: (u32, u32) = (0x15b3, 0x2100);
        const CN5000: (u32, u32) = (0x434e, 0x0001);
        match (self.vendor, self.device) {
            DATA_DIRECT => false,
            CN5000 => true,
            _ => matches!(self.class, 0x0207 | 0x0c06),
        }
    }
}

/// A number of exactly `digits` hexadecimal digits at the start of `text`, and the rest.
fn hexadecimal(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let is_hexadecimal = number.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(number, 16).ok()?;
    is_hexadecimal.then_some((number, rest))
}

/// Whether the census of HCAs has the function: by its class, by its driver, because its firmware must
/// be burnt, or because a function of the same model has an RDMA device. False for a function that cannot be read.
pub fn is_hca(root: &Root, address: &str) -> bool {
    let id = |address: &str| PciId::parse(&root.text(&format!("{PCI}/{address}/modalias")).ok()?);
    let Some(own) = id(address) else {
        return false;
    };
    let is_model = |other: &String| {
        let is_same =
            id(other).is_some_and(|id| (id.vendor, id.device) == (own.vendor, own.device));
        is_same && root.exists(&format!("{PCI}/{other}/infiniband"))
    };
    own.is_rdma()
        || own.is_in_recovery()
        || own.driver().is_some()
        || root.list(PCI).unwrap_or_default().iter().any(is_model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_modalias_tells_vendor_device_and_class() {
        let id = PciId::parse("pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00").unwrap();
        assert_eq!((id.vendor, id.device, id.class), (0x15b3, 0x101b, 0x0207));
        for wrong in [
            "",
            "pci:",
            "platform:softib",
            "pci:v000015B3d0000101B",
            "pci:v+00015B3d0000101Bsv000015B3sd00000007bc02sc07i00",
            "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc",
            "pci:v000015B3dä000101Bsv000015B3sd00000007bc02sc07i00",
        ] {
            assert_eq!(PciId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_hca_is_known_by_class_by_driver_or_by_its_model() {
        let dir = tempfile::tempdir().unwrap();
        let devices = dir.path().join("sys/bus/pci/devices");
        for (address, modalias) in [
            (
                "0000:01:00.0",
                "pci:v0000FFFFd00000001sv00000000sd00000000bc02sc07i00",
            ),
            (
                "0000:02:00.0",
                "pci:v000015B3d0000101Bsv00000000sd00000000bc02sc00i00",
            ),
            (
                "0000:03:00.0",
                "pci:v00001B36d00000005sv00000000sd00000000bc00scFFi00",
            ),
            (
                "0000:04:00.0",
                "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01",
            ),
            // A PCI Express bridge of a ConnectX-7 card.
            (
                "0000:05:00.0",
                "pci:v000015B3d00001979sv00000000sd00000000bc06sc04i00",
            ),
            // The Data Direct function of a ConnectX-8.
            (
                "0000:05:02.0",
                "pci:v000015B3d00002100sv00000000sd00000000bc02sc07i00",
            ),
            // A ConnectX-9 without firmware (HwId of mstflint).
            (
                "0000:05:03.0",
                "pci:v000015B3d00000224sv00000000sd00000000bc05sc80i00",
            ),
            ("0000:05:01.0", "garbled"),
        ] {
            fs::create_dir_all(devices.join(address)).unwrap();
            fs::write(devices.join(address).join("modalias"), modalias).unwrap();
        }
        let root = Root::new(dir.path());
        let all = || {
            let mut all = root.list(PCI).unwrap();
            all.push("0000:06:00.0".to_owned());
            all.sort();
            all.iter()
                .map(|one| is_hca(&root, one))
                .collect::<Vec<bool>>()
        };
        assert_eq!(
            all(),
            [true, true, false, false, false, false, false, true, false]
        );
        // Another function of the model has a device.
        let other = devices.join("0000:07:00.0");
        fs::create_dir_all(other.join("infiniband/softib0")).unwrap();
        fs::copy(
            devices.join("0000:03:00.0/modalias"),
            other.join("modalias"),
        )
        .unwrap();
        let known = ["0000:03:00.0", "0000:04:00.0"].map(|one| is_hca(&root, one));
        assert_eq!(known, [true, false]);
    }
}
