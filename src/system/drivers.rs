// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowledge about kernel modules by name: the drivers of HCAs, the modules of software links, and
//! their paths in the kernel's tree.

use kernel_cmdline::{LinkKind, is_rdma_module};

/// The link layers of the ports that a driver can create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fabric {
    /// Only InfiniBand (also Omni-Path, which the kernel reports as InfiniBand).
    InfiniBand,
    /// InfiniBand or Ethernet: the card has a port type.
    Either,
    /// Only Ethernet (RoCE, iWARP) or, with EFA and usNIC, neither of the two: no IPoIB.
    NoInfiniBand,
}

/// The drivers of one family of cards.
#[derive(Debug)]
pub struct Family {
    /// The drivers that bind the PCI functions.
    pub pci: &'static [&'static str],
    /// The module that creates the RDMA devices; it may be the PCI driver itself.
    pub rdma: &'static str,
    /// The kernel's name of a device without its number (`ib_register_device`).
    device: &'static str,
    /// What its ports are.
    pub fabric: Fabric,
}

impl Family {
    const fn new(
        pci: &'static [&'static str],
        rdma: &'static str,
        device: &'static str,
        fabric: Fabric,
    ) -> Family {
        Family {
            pci,
            rdma,
            device,
            fabric,
        }
    }
}

/// The families whose drivers the kernel has (drivers/infiniband/hw).
const FAMILIES: &[Family] = &[
    Family::new(&["mlx4_core"], "mlx4_ib", "mlx4", Fabric::Either),
    Family::new(&["mlx5_core"], "mlx5_ib", "mlx5", Fabric::Either),
    Family::new(&["hfi1"], "hfi1", "hfi1", Fabric::InfiniBand),
    Family::new(&["hfi2"], "hfi2", "hfi2", Fabric::InfiniBand),
    Family::new(&["ib_mthca"], "ib_mthca", "mthca", Fabric::InfiniBand),
    Family::new(&["ib_qib"], "ib_qib", "qib", Fabric::InfiniBand),
    Family::new(&["bnxt_en"], "bnxt_re", "bnxt_re", Fabric::NoInfiniBand),
    Family::new(&["cxgb4"], "iw_cxgb4", "cxgb4", Fabric::NoInfiniBand),
    Family::new(&["efa"], "efa", "efa", Fabric::NoInfiniBand),
    Family::new(&["erdma"], "erdma", "erdma", Fabric::NoInfiniBand),
    Family::new(&["hns3"], "hns_roce_hw_v2", "hns", Fabric::NoInfiniBand),
    Family::new(&["ionic"], "ionic_rdma", "ionic", Fabric::NoInfiniBand),
    Family::new(
        &["ice", "i40e", "idpf"],
        "irdma",
        "irdma",
        Fabric::NoInfiniBand,
    ),
    // irdma replaced it in Linux 5.14.
    Family::new(&["i40e"], "i40iw", "i40iw", Fabric::NoInfiniBand),
    Family::new(&["mana"], "mana_ib", "mana", Fabric::NoInfiniBand),
    Family::new(&["be2net"], "ocrdma", "ocrdma", Fabric::NoInfiniBand),
    Family::new(&["qede"], "qedr", "qedr", Fabric::NoInfiniBand),
    Family::new(
        &["usnic_verbs"],
        "usnic_verbs",
        "usnic",
        Fabric::NoInfiniBand,
    ),
    Family::new(
        &["vmw_pvrdma"],
        "vmw_pvrdma",
        "vmw_pvrdma",
        Fabric::NoInfiniBand,
    ),
];

/// Modules that give programs access to RDMA devices: no link needs them.
const FOR_PROGRAMS: &[&str] = &["ib_umad", "ib_uverbs", "rdma_ucm"];
/// The drivers of Omni-Path cards: of those of 100 Gb/s, and of the CN5000.
const OMNI_PATH: [&str; 2] = ["hfi1", "hfi2"];
/// The parameter of a module that probes the devices of a driver side by side
/// (Documentation/admin-guide/kernel-parameters.txt, `module.async_probe`).
pub const ASYNC_PROBE: &str = "async_probe=1";
/// Without it the module creates a bond0 with its default mode.
pub const NO_BOND: &str = "max_bonds=0";
/// The PCI driver that makes one RDMA device of several functions in a bond.
pub const MLX5: &str = "mlx5_core";
/// The module that makes IPoIB interfaces.
pub const IPOIB: &str = "ib_ipoib";
/// The driver of bonds.
pub const BONDING: &str = "bonding";

/// The family of a driver that binds PCI functions.
pub fn of_pci(driver: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.pci.contains(&driver))
}

/// The module that makes RDMA devices of the cards that `driver` binds: of several that kernels of
/// different versions have, the one that the kernel `has`.
pub fn maker(driver: &str, has: impl Fn(&str) -> bool) -> &str {
    let families = FAMILIES.iter().filter(|one| one.pci.contains(&driver));
    let mut makers = families.map(|family| family.rdma);
    let newest = makers.clone().next().unwrap_or(driver);
    makers.find(|maker| has(maker)).unwrap_or(newest)
}

/// The RDMA module that the PCI driver `core` of an InfiniBand card needs beside it. None for an
/// Ethernet driver: most machines that load one use no RDMA.
pub fn half_of(core: &str) -> Option<&'static str> {
    let family = of_pci(core).filter(|family| family.fabric != Fabric::NoInfiniBand)?;
    (family.rdma != core).then_some(family.rdma)
}

/// The PCI drivers of the cards whose RDMA devices this module creates, except itself.
pub fn cores_of(rdma: &str) -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter().filter(move |family| family.rdma == rdma);
    families.flat_map(|family| {
        family
            .pci
            .iter()
            .copied()
            .filter(|core| *core != family.rdma)
    })
}

/// The PCI driver of an RDMA card, by vendor and device: known also if the image does not have the
/// driver. The ranges contain the tables of mlx5/core/main.c, mlx4/main.c, mthca_main.c, qib_init.c,
/// hfi1/chip_registers.h, efa_main.c and erdma_main.c, and numbers of cards to come.
pub fn by_pci_id(vendor: u32, device: u32) -> Option<&'static str> {
    match (vendor, device) {
        (0x15b3, 0x1002..=0x1010 | 0x6340..=0x67ff) => Some("mlx4_core"),
        (0x15b3, 0x1011..=0x1fff | 0x2101 | 0xa2d0..=0xa2ff) => Some("mlx5_core"),
        (0x15b3, 0x5a44 | 0x5e8c | 0x5e8d | 0x6274 | 0x6278 | 0x6279 | 0x6282) => Some("ib_mthca"),
        (0x8086, 0x24f0 | 0x24f1) => Some("hfi1"),
        (0x1077, 0x7220 | 0x7322) | (0x1fc1, 0x0010) => Some("ib_qib"),
        (0x1d0f, 0xefa0..=0xefa3) => Some("efa"),
        (0x1ded, 0x107f | 0x5007) => Some("erdma"),
        _ => None,
    }
}

/// True for a driver whose cards have no other ports than InfiniBand or Omni-Path ones.
pub fn is_infiniband_only(name: &str) -> bool {
    of_pci(name).is_some_and(|family| family.fabric == Fabric::InfiniBand)
}

/// True for a driver of Omni-Path cards.
pub fn is_omni_path(name: &str) -> bool {
    OMNI_PATH.contains(&name)
}

/// True for a PCI driver that creates RDMA devices, alone or through its RDMA module.
pub fn binds_hcas(name: &str) -> bool {
    of_pci(name).is_some()
}

/// True for a module that creates the RDMA device of an HCA.
pub fn makes_hcas(name: &str) -> bool {
    FAMILIES.iter().any(|family| family.rdma == name)
}

/// Whether RDMA devices may come with the module: false for what only uses or serves them, and for
/// the PCI half of a driver. True for a module that is not known here.
pub fn may_make_devices(name: &str) -> bool {
    let others = ["rdma_rxe", "siw"];
    makes_hcas(name)
        || others.contains(&name)
        || !(is_rdma_module(name) || binds_hcas(name) || name == BONDING)
}

/// True for a module that is of no use without ib_core.
pub fn uses_ib_core(name: &str) -> bool {
    makes_hcas(name) || name == "rdma_rxe" || package_of_ofed(name).is_some()
}

/// The package of MLNX_OFED and DOCA that has the module, beside mlnx-ofa_kernel.
pub fn package_of_ofed(name: &str) -> Option<&'static str> {
    match name {
        "rpcrdma" => Some("mlnx-nfsrdma"),
        "ib_iser" => Some("iser"),
        "nvme_rdma" => Some("mlnx-nvme"),
        _ => None,
    }
}

/// True for a module that gives programs access to RDMA devices.
pub fn is_for_programs(name: &str) -> bool {
    FOR_PROGRAMS.contains(&name)
}

/// The family whose driver gave a device its kernel name: that of mlx5_ib for `mlx5_0`, of ib_qib
/// for `qib0`. None for a name that udev gave (`ibp129s0`), and for the name of a network interface.
pub fn by_device_name(device: &str) -> Option<&'static Family> {
    let is_number = |c: char| c == '_' || c.is_ascii_digit();
    FAMILIES.iter().find(|family| {
        let rest = device.strip_prefix(family.device);
        rest.is_some_and(|rest| rest.starts_with(is_number))
    })
}

/// Whether a driver names its devices like this one: `mlx5_0`, `mlx5_bond_0`, `qib0`; not `mlx5_ib0`, a
/// name of the images for Azure.
pub fn is_kernels_name(device: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let rest = |family: &Family| {
        let rest = device.strip_prefix(family.device)?;
        let rest = rest.strip_prefix("_bond").unwrap_or(rest);
        Some(rest.strip_prefix('_').unwrap_or(rest))
    };
    FAMILIES.iter().filter_map(rest).any(is_number)
}

/// Whether the driver names the device of several Ethernet functions of one card in a bond so: `mlx5_bond_0`
/// (mlx5_ib_stage_ib_reg_init, drivers/infiniband/hw/mlx5/main.c).
pub fn is_roce_bond(device: &str) -> bool {
    device.starts_with("mlx5_bond_")
}

/// The module that creates software links of this kind.
pub fn of_link(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Rxe => "rdma_rxe",
        LinkKind::Siw => "siw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_the_kernels_naming_tells_its_driver() {
        for (device, driver) in [
            ("mlx5_0", Some("mlx5_ib")),
            ("mlx5_bond_0", Some("mlx5_ib")),
            ("mlx4_10", Some("mlx4_ib")),
            ("hfi1_0", Some("hfi1")),
            ("hfi2_0", Some("hfi2")),
            ("qib0", Some("ib_qib")),
            ("mthca1", Some("ib_mthca")),
            ("bnxt_re0", Some("bnxt_re")),
            ("irdma1", Some("irdma")),
            ("hns_0", Some("hns_roce_hw_v2")),
            ("vmw_pvrdma0", Some("vmw_pvrdma")),
            ("mlx5", None),
            ("ib0", None),
            ("ibp129s0", None),
            ("rxe0", None),
            ("", None),
        ] {
            let found = by_device_name(device).map(|family| family.rdma);
            assert_eq!(found, driver, "{device}");
        }
    }

    #[test]
    fn names_from_udev_are_no_names_of_the_kernel() {
        for name in ["mlx5_0", "mlx5_bond_0", "hfi1_10", "qib0", "bnxt_re1"] {
            assert!(is_kernels_name(name), "{name}");
        }
        for name in ["mlx5_ib0", "ibp129s0", "rocep1s0f0", "mlx5_", "ib0", ""] {
            assert!(!is_kernels_name(name), "{name}");
        }
    }

    #[test]
    fn only_the_core_of_an_infiniband_card_needs_its_half() {
        for (driver, half, binds, makes) in [
            ("mlx5_core", Some("mlx5_ib"), true, false),
            ("mlx5_ib", None, false, true),
            ("hfi1", None, true, true),
            ("ice", None, true, false),
            ("irdma", None, false, true),
            ("efa", None, true, true),
            ("e1000e", None, false, false),
        ] {
            assert_eq!(half_of(driver), half, "{driver}");
            assert_eq!(
                (binds_hcas(driver), makes_hcas(driver)),
                (binds, makes),
                "{driver}"
            );
        }
    }

    #[test]
    fn the_maker_is_the_module_that_the_kernel_has() {
        for (driver, modules, expected) in [
            ("i40e", &["irdma", "i40iw"][..], "irdma"),
            ("i40e", &["i40iw"], "i40iw"),
            ("i40e", &[], "irdma"),
            ("ice", &["i40iw"], "irdma"),
            ("mlx5_core", &[], "mlx5_ib"),
            ("hfi1", &["hfi1"], "hfi1"),
            ("e1000e", &[], "e1000e"),
        ] {
            let found = maker(driver, |name| modules.contains(&name));
            assert_eq!(found, expected, "{driver} {modules:?}");
        }
    }

    #[test]
    fn devices_come_with_drivers_and_with_what_is_not_known() {
        for name in ["mlx5_ib", "hfi1", "efa", "i40iw", "rdma_rxe", "softib"] {
            assert!(may_make_devices(name), "{name}");
        }
        for name in [
            "mlx5_core",
            "ice",
            "ib_core",
            "ib_ipoib",
            "ib_umad",
            "rpcrdma",
            "bonding",
        ] {
            assert!(!may_make_devices(name), "{name}");
        }
    }

    #[test]
    fn every_module_of_a_family_is_one_of_the_rdma_stack() {
        for family in FAMILIES {
            assert!(
                kernel_cmdline::is_rdma_module(family.rdma),
                "{}",
                family.rdma
            );
        }
    }
}
