// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the report of one link.

use serde::{Deserialize, Serialize};

use crate::error::printable;
use crate::facts::cable::Cable;
use crate::facts::{PortRef, rules};
use crate::rdma::types::{Guid, Identity, LinkLayer};
use crate::verify::checks::Id;
use crate::verify::finding::{Finding, Status};
use crate::wish::expectation::{LinkWish, Target};
use crate::wish::origin::Origin;

/// A link's checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The requested port, interface or bond.
    pub target: Target,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The boot depends on it.
    pub required: bool,
    /// `rd.ib.require=N` requires other ports: of another link layer, or it excludes this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// `mlx5_0/1`; none while no port matches.
    pub name: Option<String>,
    /// What identifies the port.
    pub identity: Option<Identity>,
    /// NETLINK_RDMA index of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_index: Option<u32>,
    pub port_guid: Option<Guid>,
    /// InfiniBand or Ethernet.
    pub link_layer: Option<LinkLayer>,
    /// Rate as sysfs spells it.
    pub rate: Option<String>,
    /// The kernel may report SDR in place of a speed that it does not know, and one lane of an
    /// Omni-Path link in place of three.
    #[serde(skip)]
    pub is_rate_unsure: bool,
    /// The netdev attached to the port.
    pub netdev: Option<String>,
    /// Interface index of the netdev.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netdev_index: Option<u32>,
    /// The IPoIB interface on the port, if one is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The name of that interface on the command line, if the interface is gone since the handover.
    #[serde(skip)]
    pub absent: Option<String>,
    /// PCI address of its HCA.
    pub bus_address: Option<String>,
    /// What the port shares with the other function of a Socket Direct card.
    #[serde(skip)]
    pub cable: Option<Cable>,
    /// Minimum rate that was requested, Mb/s.
    pub megabits: Option<u32>,
    /// Worst of the checks that were made.
    pub status: Status,
    /// The checks, in the order of the table.
    pub checks: Vec<Finding>,
}

impl LinkReport {
    /// The report of one wish and the port found for it.
    pub fn new(wish: &LinkWish, port: Option<PortRef<'_>>, checks: Vec<Finding>) -> LinkReport {
        LinkReport {
            target: wish.target.clone(),
            requested_by: wish.requested_by.clone(),
            required: wish.required,
            uncounted: wish.uncounted,
            name: port.map(|p| p.name()),
            identity: port
                .and_then(|port| port.identity())
                .or_else(|| wish.identity.clone()),
            device_index: port.and_then(|p| p.device.ifindex),
            netdev_index: port.and_then(|p| p.port.netdev_index),
            port_guid: port.and_then(|p| p.port.port_guid),
            link_layer: port.and_then(|p| p.port.link_layer),
            rate: port.and_then(|p| p.port.rate.as_ref().map(|r| r.text.clone())),
            is_rate_unsure: port.is_some_and(|p| {
                let rate = p.port.rate.as_ref();
                rate.is_some_and(|rate| {
                    rules::may_be_faster(p, rate) || rules::with_three_lanes(p, rate).is_some()
                })
            }),
            netdev: port.and_then(|p| p.port.netdev.clone()),
            interface: None,
            absent: None,
            bus_address: port.and_then(|p| p.device.bus_address.clone()),
            cable: None,
            megabits: wish.megabits,
            status: checks
                .iter()
                .map(|f| f.status)
                .filter(|status| *status != Status::Skipped)
                .max()
                .unwrap_or(Status::Unknown),
            checks,
        }
    }

    /// The name in messages: the interface and its port, the port, or the selector while no port
    /// matches.
    pub fn object(&self) -> String {
        match (self.interface.as_ref().or(self.absent.as_ref()), &self.name) {
            (Some(interface), Some(port)) => format!("{interface} ({port})"),
            (_, Some(port)) => port.clone(),
            _ => self.target.to_string(),
        }
    }

    /// The link is usable: every check passed or only warns.
    pub fn is_good(&self) -> bool {
        matches!(self.status, Status::Ok | Status::Warning)
    }

    /// The link is usable, as far as this network namespace shows its port.
    pub fn is_verified(&self) -> bool {
        self.is_good() && !self.is_elsewhere()
    }

    /// The RDMA device is in another network namespace, and no argument names its port.
    pub fn is_elsewhere(&self) -> bool {
        self.is_present(Status::Warning)
    }

    /// A file cannot be read that shows whether the link has a port.
    pub fn may_have_port(&self) -> bool {
        self.is_present(Status::Unknown)
    }

    fn is_present(&self, status: Status) -> bool {
        let is_it = |f: &Finding| f.check == Id::DevicePresent && f.status == status;
        self.checks.iter().any(is_it)
    }

    /// No check of the link failed.
    pub fn may_be_good(&self) -> bool {
        self.status != Status::Critical
    }

    /// The first check that failed or is unknown, otherwise the first that warns: what `up` waits
    /// for, and the diagnosis at the end.
    pub fn trouble(&self) -> Option<&Finding> {
        let failed = |f: &&Finding| f.status.is_wrong();
        let warns = |f: &&Finding| f.status == Status::Warning;
        let first = self.checks.iter().find(failed);
        first.or_else(|| self.checks.iter().find(warns))
    }

    /// `OBJECT: ` and the sentence of [`LinkReport::trouble`].
    pub fn diagnosis(&self) -> Option<String> {
        let trouble = self.trouble()?;
        Some(format!(
            "{}: {}",
            printable(&self.object()),
            trouble.sentence()
        ))
    }

    /// Description of a good link: `InfiniBand, 200 Gb/sec (4X HDR), GUID 0x..., ib0`.
    pub fn description(&self) -> String {
        let mut parts = Vec::new();
        let known = self.link_layer.filter(|layer| *layer != LinkLayer::Unknown);
        parts.extend(known.map(|layer| layer.to_string()));
        parts.extend(self.rate.clone());
        parts.extend(self.port_guid.map(|guid| format!("port GUID {guid}")));
        parts.extend(self.netdev.clone());
        parts.extend(self.bus_address.clone());
        // A bond has no port: its interfaces describe it.
        let found = |id: Id| {
            let is_it = |f: &&Finding| f.check == id && f.status == Status::Ok;
            self.checks.iter().find(is_it)?.found.clone()
        };
        parts.extend(found(Id::BondSlaves).map(|slaves| format!("bond of {slaves}")));
        parts.extend(found(Id::BondCarrier).map(|by| format!("carried {by}")));
        printable(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_check_is_no_pass() {
        let status = |checks| LinkReport::new(&LinkWish::default(), None, checks).status;
        assert_eq!(status(Vec::new()), Status::Unknown);
        let skipped = || Finding::skipped(Id::PortLid);
        assert_eq!(status(vec![skipped()]), Status::Unknown);
        let passed = Finding::ok(Id::PortState, "ACTIVE");
        assert_eq!(status(vec![passed, skipped()]), Status::Ok);
    }
}
