// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks, one static table: what each proves, which one must pass before it means anything,
//! how bad a failure is, and what to do about it.

use serde::{Deserialize, Serialize};

/// How bad a failed check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The link cannot be used as wanted.
    Critical,
    /// It works, and somebody should look.
    Warning,
}

/// Name of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Id {
    /// The driver.
    #[serde(rename = "module.live")]
    ModuleLive,
    /// The wish can be met at all.
    #[serde(rename = "wish.possible")]
    WishPossible,
    /// The RDMA device is there.
    #[serde(rename = "device.present")]
    DevicePresent,
    /// InfiniBand or Ethernet.
    #[serde(rename = "port.link_layer")]
    PortLinkLayer,
    /// The netdev below the port.
    #[serde(rename = "port.netdev")]
    PortNetdev,
    /// The wire.
    #[serde(rename = "port.physical_state")]
    PortPhysicalState,
    /// Logical state.
    #[serde(rename = "port.state")]
    PortState,
    /// Local identifier.
    #[serde(rename = "port.lid")]
    PortLid,
    /// LID of the subnet manager.
    #[serde(rename = "port.sm_lid")]
    PortSmLid,
    /// The subnet administrator answers.
    #[serde(rename = "port.sa")]
    PortSa,
    /// Speed.
    #[serde(rename = "port.rate")]
    PortRate,
    /// Partition of the interface.
    #[serde(rename = "port.pkey")]
    PortPkey,
    /// The IPoIB interface is there.
    #[serde(rename = "ipoib.present")]
    IpoibPresent,
    /// Its name.
    #[serde(rename = "ipoib.name")]
    IpoibName,
    /// Connected or datagram.
    #[serde(rename = "ipoib.mode")]
    IpoibMode,
    /// Administratively up.
    #[serde(rename = "ipoib.up")]
    IpoibUp,
    /// The broadcast group is joined.
    #[serde(rename = "ipoib.carrier")]
    IpoibCarrier,
    /// Largest packet.
    #[serde(rename = "ipoib.mtu")]
    IpoibMtu,
    /// The bond is there.
    #[serde(rename = "bond.present")]
    BondPresent,
    /// How it works.
    #[serde(rename = "bond.mode")]
    BondMode,
    /// What it is made of.
    #[serde(rename = "bond.slaves")]
    BondSlaves,
    /// Its driver's options.
    #[serde(rename = "bond.options")]
    BondOptions,
    /// One of its interfaces carries traffic.
    #[serde(rename = "bond.carrier")]
    BondCarrier,
    /// What a DHCP server granted.
    #[serde(rename = "lease.present")]
    LeasePresent,
    /// What a DHCPv6 server granted.
    #[serde(rename = "lease6.present")]
    Lease6Present,
    /// The planned IP addresses.
    #[serde(rename = "address.present")]
    AddressPresent,
    /// The planned routes.
    #[serde(rename = "route.present")]
    RoutePresent,
    /// A storage server.
    #[serde(rename = "server.rdma")]
    ServerRdma,
    /// The root file system.
    #[serde(rename = "root.mounted")]
    RootMounted,
    /// What carries it: TCP or RDMA.
    #[serde(rename = "root.transport")]
    RootTransport,
    /// The link that carries it.
    #[serde(rename = "root.path")]
    RootPath,
}

/// One row of the table.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub id: Id,
    /// The name as written in reports.
    pub name: &'static str,
    /// The checks that must pass first; when one fails this one is skipped, not failed.
    pub parents: &'static [Id],
    /// How bad a failure is.
    pub severity: Severity,
    /// What to call its failure.
    pub failure: &'static str,
    /// What it proves.
    pub why: &'static str,
    /// What to do when it fails and the case at hand suggests nothing better.
    pub hint: &'static str,
}

/// All checks, a parent always before its children; this is the order of reports.
pub const TABLE: &[Check] = &[
    Check {
        id: Id::ModuleLive,
        name: "module.live",
        parents: &[],
        severity: Severity::Critical,
        failure: "kernel module is not loaded",
        why: "the kernel module that was asked for is loaded and initialised",
        hint: "see dmesg",
    },
    Check {
        id: Id::WishPossible,
        name: "wish.possible",
        parents: &[],
        severity: Severity::Critical,
        failure: "cannot be had here",
        why: "this machine and image can do what was asked for",
        hint: "run: ibboot plan",
    },
    Check {
        id: Id::DevicePresent,
        name: "device.present",
        parents: &[Id::WishPossible],
        severity: Severity::Critical,
        failure: "no such RDMA port",
        why: "an RDMA device with this port exists",
        hint: "check that its driver is loaded and that the card is on its bus (lspci)",
    },
    Check {
        id: Id::PortLinkLayer,
        name: "port.link_layer",
        parents: &[Id::DevicePresent],
        severity: Severity::Critical,
        failure: "wrong link layer",
        why: "the port speaks the link layer that was asked for",
        hint: "set the port type (rd.ib.porttype= for mlx4, LINK_TYPE in the firmware for mlx5)",
    },
    Check {
        id: Id::PortNetdev,
        name: "port.netdev",
        parents: &[Id::DevicePresent],
        severity: Severity::Critical,
        failure: "wrong network interface",
        why: "the port is bound to the network interface that was asked for",
        hint: "look at: rdma link",
    },
    Check {
        id: Id::PortPhysicalState,
        name: "port.physical_state",
        parents: &[Id::PortLinkLayer],
        severity: Severity::Critical,
        failure: "no physical link",
        why: "the wire is trained",
        hint: "check the cable, the transceiver and the switch port",
    },
    Check {
        id: Id::PortState,
        name: "port.state",
        parents: &[Id::PortPhysicalState],
        severity: Severity::Critical,
        failure: "port is not ACTIVE",
        why: "the port carries data",
        hint: "check the subnet manager",
    },
    Check {
        id: Id::PortLid,
        name: "port.lid",
        parents: &[Id::PortState],
        severity: Severity::Critical,
        failure: "no LID",
        why: "a subnet manager gave the port an address",
        hint: "check the subnet manager's log for this port's GUID",
    },
    Check {
        id: Id::PortSmLid,
        name: "port.sm_lid",
        parents: &[Id::PortState],
        severity: Severity::Critical,
        failure: "no subnet manager LID",
        why: "the port knows its subnet manager",
        hint: "check the subnet manager's log for this port's GUID",
    },
    Check {
        id: Id::PortSa,
        name: "port.sa",
        parents: &[Id::PortLid, Id::PortSmLid],
        severity: Severity::Warning,
        failure: "no word from the subnet administrator",
        why: "the subnet manager that brought the port up still answers",
        hint: "what is up goes on, and nothing new comes: no other port, no other path; see the subnet manager's log, restart it",
    },
    Check {
        id: Id::PortRate,
        name: "port.rate",
        parents: &[Id::PortState],
        severity: Severity::Critical,
        failure: "too slow",
        why: "the port is as fast as was asked for",
        hint: "check the cable and the switch port's speed; a degraded link often trains with fewer lanes",
    },
    Check {
        id: Id::IpoibPresent,
        name: "ipoib.present",
        parents: &[Id::PortLinkLayer],
        severity: Severity::Critical,
        failure: "no IPoIB interface",
        why: "the port has the IPoIB interface that was asked for",
        hint: "load ib_ipoib (rd.driver.post=ib_ipoib)",
    },
    Check {
        id: Id::IpoibName,
        name: "ipoib.name",
        parents: &[Id::IpoibPresent],
        severity: Severity::Critical,
        failure: "wrong name",
        why: "the interface has the name that ifname= gives it",
        hint: "look for another program that names interfaces (udev's .link files)",
    },
    Check {
        id: Id::IpoibMode,
        name: "ipoib.mode",
        parents: &[Id::IpoibPresent],
        severity: Severity::Critical,
        failure: "wrong IPoIB mode",
        why: "the interface is in the mode that was asked for",
        hint: "look for another program that sets it (NetworkManager sets its profile's transport-mode)",
    },
    Check {
        id: Id::PortPkey,
        name: "port.pkey",
        parents: &[Id::PortState, Id::IpoibPresent],
        severity: Severity::Critical,
        failure: "not in the partition",
        why: "the subnet manager made the port a full member of the interface's partition",
        hint: "give the port this P_Key with full membership in the subnet manager's partitions.conf",
    },
    Check {
        id: Id::IpoibUp,
        name: "ipoib.up",
        parents: &[Id::IpoibPresent],
        severity: Severity::Critical,
        failure: "interface is down",
        why: "the interface is administratively up",
        hint: "look for another program that sets it down",
    },
    Check {
        id: Id::IpoibCarrier,
        name: "ipoib.carrier",
        parents: &[Id::PortState, Id::PortPkey, Id::IpoibUp],
        severity: Severity::Critical,
        failure: "port is ACTIVE and the interface has no carrier",
        why: "the subnet administrator let the interface into its broadcast group",
        hint: "the subnet administrator is silent, or has no broadcast group for this P_Key (ipoib flag in partitions.conf)",
    },
    Check {
        id: Id::BondPresent,
        name: "bond.present",
        parents: &[],
        severity: Severity::Critical,
        failure: "no such bond",
        why: "the bond that was asked for is there",
        hint: "ibboot up makes it; look for another program that removes it",
    },
    Check {
        id: Id::BondMode,
        name: "bond.mode",
        parents: &[Id::BondPresent],
        severity: Severity::Critical,
        failure: "wrong bonding mode",
        why: "the bond is in the only mode that works with InfiniBand",
        hint: "look for another program that made it",
    },
    Check {
        id: Id::BondSlaves,
        name: "bond.slaves",
        parents: &[Id::BondPresent],
        severity: Severity::Critical,
        failure: "interfaces are missing in the bond",
        why: "the bond has the interfaces that were asked for; a warning while it has one of them",
        hint: "see the checks of the interface that is missing, and dmesg",
    },
    Check {
        id: Id::BondOptions,
        name: "bond.options",
        parents: &[Id::BondPresent],
        severity: Severity::Warning,
        failure: "options are not as asked for",
        why: "the bonding driver took the options that were asked for",
        hint: "see dmesg; what there is: modinfo bonding",
    },
    Check {
        id: Id::BondCarrier,
        name: "bond.carrier",
        parents: &[Id::BondMode, Id::BondSlaves],
        severity: Severity::Critical,
        failure: "the bond has no carrier",
        why: "the bond is up and one of its interfaces carries its traffic",
        hint: "none of its interfaces has carrier: see their checks",
    },
    Check {
        id: Id::IpoibMtu,
        name: "ipoib.mtu",
        parents: &[Id::IpoibCarrier, Id::IpoibMode, Id::BondCarrier],
        severity: Severity::Critical,
        failure: "wrong MTU",
        why: "the interface has the MTU that was asked for",
        hint: "the broadcast group grants no more in datagram mode: mtu=5 in partitions.conf gives 4092, connected mode up to 65520",
    },
    Check {
        id: Id::LeasePresent,
        name: "lease.present",
        parents: &[Id::IpoibCarrier, Id::BondCarrier],
        severity: Severity::Critical,
        failure: "no DHCP lease",
        why: "a DHCP server granted an address, and it still holds",
        hint: "a DHCP server or relay must listen on this network",
    },
    Check {
        id: Id::Lease6Present,
        name: "lease6.present",
        parents: &[Id::IpoibCarrier, Id::BondCarrier],
        severity: Severity::Critical,
        failure: "no DHCPv6 lease",
        why: "a DHCPv6 server granted an address, and it still holds",
        hint: "a DHCPv6 server or relay must listen on this network",
    },
    Check {
        id: Id::AddressPresent,
        name: "address.present",
        parents: &[
            Id::IpoibCarrier,
            Id::BondCarrier,
            Id::LeasePresent,
            Id::Lease6Present,
        ],
        severity: Severity::Critical,
        failure: "address is missing",
        why: "the interface has the IP addresses that were asked for",
        hint: "look for another program that removes addresses",
    },
    Check {
        id: Id::RoutePresent,
        name: "route.present",
        parents: &[Id::AddressPresent],
        severity: Severity::Critical,
        failure: "route is missing",
        why: "the default route leads through the gateway that was asked for, and the other routes are there",
        hint: "the gateway must be reachable by the interface's own prefix; look at: ip route",
    },
    Check {
        id: Id::ServerRdma,
        name: "server.rdma",
        parents: &[],
        severity: Severity::Critical,
        failure: "does not answer over RDMA",
        why: "the server answers to RDMA's connection manager, not to TCP alone",
        hint: "load rdma_cm on the server; look for a firewall on UDP port 4791 (RoCE)",
    },
    Check {
        id: Id::RootMounted,
        name: "root.mounted",
        parents: &[],
        severity: Severity::Critical,
        failure: "root is not the file system that was asked for",
        why: "the root file system is the one of the server that was asked for",
        hint: "look at: findmnt /",
    },
    Check {
        id: Id::RootTransport,
        name: "root.transport",
        parents: &[Id::RootMounted],
        severity: Severity::Critical,
        failure: "root does not come by the transport that was asked for",
        why: "the mount options of NFS, the iSCSI session or the NVMe controller name the transport that was asked for",
        hint: "look at: findmnt -o OPTIONS /",
    },
    Check {
        id: Id::RootPath,
        name: "root.path",
        parents: &[Id::RootMounted, Id::RootTransport],
        severity: Severity::Critical,
        failure: "root does not come over a verified link",
        why: "the connection to the server, or the route to it, goes by a verified link",
        hint: "look at: rdma resource show cm_id; ip route get the server's address",
    },
];

/// The row of a check.
pub fn check(id: Id) -> Option<&'static Check> {
    TABLE.iter().find(|row| row.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_stands_before_its_children_and_names_are_the_ids() {
        for (position, row) in TABLE.iter().enumerate() {
            for parent in row.parents {
                assert!(
                    TABLE[..position].iter().any(|r| r.id == *parent),
                    "{}",
                    row.name
                );
            }
            let json = serde_json::to_string(&row.id).unwrap();
            assert_eq!(json, format!("\"{}\"", row.name));
        }
    }
}
