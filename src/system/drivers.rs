// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowledge about kernel modules by name: the drivers of HCAs, the modules of software links, and
//! their paths in the kernel's tree.

use kernel_cmdline::LinkKind;

/// PCI drivers that create no RDMA device, each with the module that creates it.
const RDMA_HALF: &[(&str, &str)] = &[("mlx4_core", "mlx4_ib"), ("mlx5_core", "mlx5_ib")];
/// PCI drivers that are InfiniBand drivers themselves.
const HCA: &[&str] = &["hfi1", "ib_mthca", "ib_qib"];
/// Modules that give programs access to RDMA devices: no link needs them.
const FOR_PROGRAMS: &[&str] = &["ib_umad", "ib_uverbs", "rdma_ucm"];
/// The driver of bonds.
pub const BONDING: &str = "bonding";

/// Paths of the usual modules in the kernel's tree, to name the file of a missing module.
const PLACES: &[(&str, &str)] = &[
    ("ib_core", "drivers/infiniband/core"),
    ("ib_ipoib", "drivers/infiniband/ulp/ipoib"),
    ("ib_iser", "drivers/infiniband/ulp/iser"),
    ("ib_umad", "drivers/infiniband/core"),
    ("ib_uverbs", "drivers/infiniband/core"),
    ("mlx4_core", "drivers/net/ethernet/mellanox/mlx4"),
    ("mlx4_ib", "drivers/infiniband/hw/mlx4"),
    ("mlx5_core", "drivers/net/ethernet/mellanox/mlx5/core"),
    ("mlx5_ib", "drivers/infiniband/hw/mlx5"),
    ("nvme_rdma", "drivers/nvme/host"),
    ("rdma_cm", "drivers/infiniband/core"),
    ("bonding", "drivers/net/bonding"),
    ("rdma_rxe", "drivers/infiniband/sw/rxe"),
    ("rdma_ucm", "drivers/infiniband/core"),
    ("rpcrdma", "net/sunrpc/xprtrdma"),
    ("siw", "drivers/infiniband/sw/siw"),
];

/// The RDMA module that belongs to the PCI driver `core`.
pub fn half_of(core: &str) -> Option<&'static str> {
    let found = RDMA_HALF.iter().find(|(name, _)| *name == core);
    found.map(|(_, half)| *half)
}

/// The PCI driver of an RDMA card, by vendor and device (the tables of mlx5/core/main.c,
/// mlx4/main.c, mthca_main.c, qib_init.c, hfi1/chip_registers.h, efa_main.c, erdma_main.c): known
/// also if the image does not have the driver.
pub fn of_pci(vendor: u32, device: u32) -> Option<&'static str> {
    match (vendor, device) {
        (0x15b3, 0x1002..=0x1010 | 0x6340..=0x67ff) => Some("mlx4_core"),
        (0x15b3, 0x1011..=0x1fff | 0xa2d0..=0xa2ff) => Some("mlx5_core"),
        (0x15b3, 0x5a00..=0x62ff) => Some("ib_mthca"),
        (0x8086, 0x24f0 | 0x24f1) => Some("hfi1"),
        (0x1077, 0x7220 | 0x7322) | (0x1fc1, 0x0010) => Some("ib_qib"),
        (0x1d0f, 0xefa0..=0xefa3) => Some("efa"),
        (0x1ded, 0x107f | 0x5007) => Some("erdma"),
        _ => None,
    }
}

/// True for a driver whose cards have no other ports than InfiniBand or Omni-Path ones.
pub fn is_infiniband_only(name: &str) -> bool {
    HCA.contains(&name)
}

/// True for a PCI driver that creates RDMA devices, alone or through its RDMA module.
pub fn binds_hcas(name: &str) -> bool {
    half_of(name).is_some() || HCA.contains(&name)
}

/// True for a module that creates the RDMA device of an HCA.
pub fn makes_hcas(name: &str) -> bool {
    HCA.contains(&name) || RDMA_HALF.iter().any(|(_, half)| *half == name)
}

/// True for a module that gives programs access to RDMA devices.
pub fn is_for_programs(name: &str) -> bool {
    FOR_PROGRAMS.contains(&name)
}

/// The driver that gave a device its kernel name: mlx5_ib for `mlx5_0`, ib_qib for `qib0`. None for
/// a name that udev gave (`ibp129s0`), and for the name of a network interface.
pub fn by_device_name(device: &str) -> Option<&'static str> {
    let is_number = |c: char| c == '_' || c.is_ascii_digit();
    let stem = |driver: &'static str| driver.trim_start_matches("ib_").trim_end_matches("_ib");
    let names = |driver: &&'static str| {
        let rest = device.strip_prefix(stem(driver));
        rest.is_some_and(|rest| rest.starts_with(is_number))
    };
    let halves = RDMA_HALF.iter().map(|(_, half)| *half);
    halves.chain(HCA.iter().copied()).find(names)
}

/// The module that creates software links of this kind.
pub fn of_link(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Rxe => "rdma_rxe",
        LinkKind::Siw => "siw",
    }
}

/// Path of a module in modules.dep of a tree without compression.
pub fn usual_file(name: &str) -> String {
    let place = PLACES.iter().find(|(module, _)| *module == name);
    place.map_or_else(
        || format!("{name}.ko"),
        |(_, place)| format!("kernel/{place}/{name}.ko"),
    )
}

#[cfg(test)]
mod tests {
    use super::by_device_name;

    #[test]
    fn a_device_of_the_kernels_naming_tells_its_driver() {
        for (device, driver) in [
            ("mlx5_0", Some("mlx5_ib")),
            ("mlx5_bond_0", Some("mlx5_ib")),
            ("mlx4_10", Some("mlx4_ib")),
            ("hfi1_0", Some("hfi1")),
            ("qib0", Some("ib_qib")),
            ("mthca1", Some("ib_mthca")),
            ("mlx5", None),
            ("ib0", None),
            ("ibp129s0", None),
            ("rxe0", None),
            ("", None),
        ] {
            assert_eq!(by_device_name(device), driver, "{device}");
        }
    }
}
