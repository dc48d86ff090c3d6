// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the ports that carry no link.

use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Role};

/// Ports of one device that carry no link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherPorts {
    /// Name of the device.
    pub ifname: String,
    /// What the ports are.
    pub role: Role,
    /// The device that an SMI device belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Port numbers, ascending.
    pub ports: Vec<u32>,
}

impl OtherPorts {
    /// The ports of a snapshot that carry no link, by device and role.
    pub fn of(facts: &Facts) -> Vec<OtherPorts> {
        let mut others: Vec<OtherPorts> = Vec::new();
        for found in facts.all_ports().filter(|found| !found.port.role.is_link()) {
            let (ifname, role) = (&found.device.ifname, found.port.role);
            let known = others
                .iter_mut()
                .find(|o| o.ifname == *ifname && o.role == role);
            match known {
                Some(known) => known.ports.push(found.port.port),
                None => others.push(OtherPorts {
                    ifname: ifname.clone(),
                    role,
                    parent: found
                        .device
                        .sub_device
                        .as_ref()
                        .and_then(|sub| sub.parent.clone()),
                    ports: vec![found.port.port],
                }),
            }
        }
        others
    }

    /// `mlx5_0/2-4,7`.
    pub fn name(&self) -> String {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for port in &self.ports {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*port) => *last = *port,
                _ => runs.push((*port, *port)),
            }
        }
        let run = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let runs: Vec<String> = runs.iter().map(run).collect();
        format!("{}/{}", self.ifname, runs.join(","))
    }

    /// What the ports are, in words.
    pub fn words(&self) -> String {
        let of = self.parent.as_ref().map(|parent| format!(" of {parent}"));
        format!("{}{}", self.role.words(), of.unwrap_or_default())
    }
}
