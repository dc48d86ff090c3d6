// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel modules of the RDMA subsystem.

/// Modules of the RDMA subsystem: a command line with one of them in `rd.driver.*` requests
/// RDMA. The list has no drivers that also serve plain Ethernet (`mlx4_core`, `mlx5_core`,
/// `cxgb4`, `ice` and others), because every node loads these.
pub const RDMA_MODULES: &[&str] = &[
    "bnxt_re",
    "efa",
    "erdma",
    "hfi1",
    "hfi2",
    "hns_roce_hw_v2",
    "i40iw",
    "ib_cm",
    "ib_core",
    "ib_ipoib",
    "ib_iser",
    "ib_isert",
    "ib_mthca",
    "ib_qib",
    "ib_srp",
    "ib_srpt",
    "ib_umad",
    "ib_uverbs",
    "ionic_rdma",
    "irdma",
    "iw_cm",
    "iw_cxgb4",
    "mana_ib",
    "mlx4_ib",
    "mlx5_ib",
    "nvme_rdma",
    "nvmet_rdma",
    "ocrdma",
    "opa_vnic",
    "qedr",
    "rdma_cm",
    "rdma_rxe",
    "rdma_ucm",
    "rdmavt",
    "rds_rdma",
    "rpcrdma",
    "siw",
    "svcrdma",
    "usnic_verbs",
    "vmw_pvrdma",
    "xprtrdma",
];

/// Maximum length of a module name, in bytes (the kernel's MODULE_NAME_LEN on 64 bit, without
/// the NUL).
pub const MODULE_NAME: usize = 55;

/// Whether `name` is one of [`RDMA_MODULES`]; `-` and `_` are the same character.
pub fn is_rdma_module(name: &str) -> bool {
    let plain = |byte| if byte == b'-' { b'_' } else { byte };
    RDMA_MODULES
        .iter()
        .any(|module| module.bytes().eq(name.bytes().map(plain)))
}

/// Whether `name` can be a module name and is not an option of modprobe.
pub(crate) fn is_module_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MODULE_NAME
        && !name.starts_with('-')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
