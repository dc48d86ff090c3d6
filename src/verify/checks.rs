// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks, one static table. A row says what the check proves, which checks must pass
//! first, how severe a failure is, what to do about a failure, which files the check needs, when
//! the check applies and which function evaluates it.

use serde::{Deserialize, Serialize};

use super::object::{Object, judge};
use super::unread::{
    ADDRESSES, CONNECTIONS, FUNCTIONS, GRANTED, IDENTITY, JOINED, ROOT, ROUTES, SWITCH,
};
use super::{bond, carrier, degraded, interface, lease, link, module, port, root, server};
use crate::facts::{Facts, NETNS_MODE, SERVERS};
use crate::system::modules::OS_RELEASE;
use crate::verify::finding::Finding;

/// Severity of a failed check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The link is not usable as requested.
    Critical,
    /// The link works, but needs attention.
    Warning,
}

/// What a failed check waits for during the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaits {
    /// A driver that creates a device or an interface.
    Driver,
    /// The training of the link.
    PhysicalLink,
    /// The subnet manager.
    SubnetManager,
    /// The multicast join of an interface.
    Carrier,
    /// A DHCP server.
    Lease,
    /// Duplicate address detection, or a router.
    Address,
    /// A server.
    Server,
    /// The interfaces of a bond.
    Members,
    /// A setting of ibboot that the kernel reports back.
    Setting,
}

impl Awaits {
    /// The words after "waiting for".
    pub fn words(self) -> &'static str {
        match self {
            Awaits::Driver => "the driver",
            Awaits::PhysicalLink => "the physical link",
            Awaits::SubnetManager => "the subnet manager",
            Awaits::Carrier => "carrier",
            Awaits::Lease => "a DHCP lease",
            Awaits::Address => "the address",
            Awaits::Server => "an answer from the server",
            Awaits::Members => "the interfaces to join the bond",
            Awaits::Setting => "the kernel to apply the settings",
        }
    }

    /// How long this lasts on a machine without a fault, in seconds.
    pub fn usual_s(self) -> u64 {
        match self {
            Awaits::Driver | Awaits::Setting => 2,
            Awaits::PhysicalLink | Awaits::Members => 5,
            // The subnet administrator is asked after 2 s, for up to 3 s: the cause is known then.
            Awaits::Carrier => 6,
            // A lost router solicitation is repeated after 4 s (RFC 4861, section 10); up to 1 s of delay
            // before the first one, 2 s of duplicate address detection after the answer.
            Awaits::Lease | Awaits::Address => 8,
            Awaits::SubnetManager | Awaits::Server => 10,
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Check {
    /// Identity of the check.
    pub id: Id,
    /// The name as written in reports.
    pub name: &'static str,
    /// The checks that must pass first; if one fails, this check is skipped.
    pub parents: &'static [Id],
    /// Severity of a failure.
    pub severity: Severity,
    /// The failure in words.
    pub failure: &'static str,
    /// What a pass proves.
    pub why: &'static str,
    /// What to do on a failure for which the check has no better hint.
    pub hint: &'static str,
    /// What is missing as long as the check fails.
    pub awaits: Awaits,
    /// The files that the check needs, as groups of patterns (`unread`).
    pub(super) files: &'static [&'static [&'static str]],
    /// The check passes only if all these files were read: a pass is a statement about all of them.
    pub(super) complete: bool,
    /// The finding about an object, skipped unless the parents passed; none if the check does not
    /// apply.
    pub(super) rule: fn(&Object<'_>, &Facts, bool) -> Option<Finding>,
}

/// Makes [`Id`] and [`TABLE`] of the rows.
macro_rules! table {
    ($($id:ident {
        name: $name:literal,
        parents: [$($parent:ident),*],
        severity: $severity:ident,
        failure: $failure:literal,
        why: $why:literal,
        hint: $hint:literal,
        awaits: $awaits:ident,
        files: [$($files:expr),*],
        $(complete: $complete:literal,)?
        applies: $part:ident($applies:expr),
        evaluate: $evaluate:expr,
    })*) => {
        /// Identity of a check; JSON has its name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Id {
            $(#[doc = $why] #[serde(rename = $name)] $id,)*
        }

        impl Id {
            /// The row of the check.
            pub const fn row(self) -> &'static Check {
                match self {
                    $(Id::$id => {
                        static ROW: Check = Check {
                            id: Id::$id,
                            name: $name,
                            parents: &[$(Id::$parent),*],
                            severity: Severity::$severity,
                            failure: $failure,
                            why: $why,
                            hint: $hint,
                            awaits: Awaits::$awaits,
                            files: &[$($files),*],
                            complete: false $(|| $complete)?,
                            rule: |object, facts, is_met| {
                                let part = object.$part.as_ref()?;
                                judge(Id::$id, part, facts, is_met, $applies, $evaluate)
                            },
                        };
                        &ROW
                    })*
                }
            }
        }

        /// All checks, a parent always before its children; this is the order of reports.
        pub static TABLE: &[&Check] = &[$(Id::$id.row()),*];
    };
}

table! {
    ModuleLive {
        name: "module.live",
        parents: [],
        severity: Critical,
        failure: "kernel module is not loaded",
        why: "the requested kernel module is loaded and initialised",
        hint: "see dmesg",
        awaits: Driver,
        files: [&["{module}/**", OS_RELEASE]],
        applies: module(|_, _| true),
        evaluate: |module, facts| module::live(module, facts),
    }
    RdmaNetns {
        name: "rdma.netns",
        parents: [ModuleLive],
        severity: Critical,
        failure: "wrong network namespace mode",
        why: "RDMA devices have the requested network namespace mode",
        hint: "set the mode before other network namespaces exist: the kernel refuses a change while there are any; see dmesg",
        awaits: Setting,
        files: [&[NETNS_MODE]],
        applies: module(|module, _| module.netns.is_some()),
        evaluate: |module, facts| module::netns(module, facts),
    }
    WishPossible {
        name: "request.possible",
        parents: [],
        severity: Critical,
        failure: "cannot be done as requested",
        why: "this machine and image can meet the request",
        hint: "correct the argument, or build the initramfs with the missing module (dracut --force --add-drivers MODULE)",
        awaits: Setting,
        files: [],
        applies: link(|link, _| link.is_refused()),
        evaluate: |link, _| link::refused(link.wish),
    }
    HcaDevice {
        name: "hca.device",
        parents: [],
        severity: Critical,
        failure: "this HCA has no RDMA device",
        why: "the HCA on the PCI bus has an RDMA device",
        hint: "see dmesg",
        awaits: Driver,
        files: [IDENTITY, FUNCTIONS, &[NETNS_MODE]],
        applies: function(|_, _| true),
        evaluate: |function, _| link::device_of(function),
    }
    DevicePresent {
        name: "device.present",
        parents: [WishPossible],
        severity: Critical,
        failure: "no such RDMA port",
        why: "an RDMA device with this port exists",
        hint: "check that its driver is loaded; ibboot status shows the ports of this machine",
        awaits: Driver,
        files: [IDENTITY, JOINED, &[NETNS_MODE]],
        applies: link(|link, _| !link.is_refused()),
        evaluate: link::present,
    }
    DeviceAnswers {
        name: "device.answers",
        parents: [DevicePresent],
        severity: Critical,
        failure: "the device does not answer",
        why: "the device answers the kernel's queries",
        hint: "its firmware may be dead: look in dmesg for time-outs of its driver, then reset or replace the card",
        awaits: Driver,
        files: [],
        applies: port(|port, _| port.found.device.silent_s.is_some()),
        evaluate: |port, _| port::silent(port.found),
    }
    PortLinkLayer {
        name: "port.link_layer",
        parents: [DevicePresent],
        severity: Critical,
        failure: "wrong link layer",
        why: "the port has the requested link layer",
        hint: "set the port type (rd.ib.porttype= for mlx4, LINK_TYPE in the firmware for mlx5)",
        awaits: Setting,
        files: [&["{port}/link_layer"]],
        applies: port(|_, _| true),
        evaluate: |port, _| port::link_layer(port),
    }
    PortNetdev {
        name: "port.netdev",
        parents: [DevicePresent, DeviceAnswers],
        severity: Critical,
        failure: "wrong network interface",
        why: "the port is bound to the requested network interface",
        hint: "ibboot status shows the interface of each port",
        awaits: Driver,
        files: [&["{port}/gid_attrs/ndevs/0", "{port}/link_layer", "{device}/parent"]],
        applies: port(|port, _| port.wish.netdev.is_some()),
        evaluate: |port, _| port::netdev(port.wish, port.found.port),
    }
    PortPhysicalState {
        name: "port.physical_state",
        parents: [PortLinkLayer, DeviceAnswers],
        severity: Critical,
        failure: "no physical link",
        why: "the physical link is trained",
        hint: "check the cable, the transceiver and the switch port",
        awaits: PhysicalLink,
        files: [&["{port}/phys_state"]],
        applies: port(|_, _| true),
        evaluate: |port, facts| port::physical_state(port.found, facts),
    }
    PortState {
        name: "port.state",
        parents: [PortPhysicalState],
        severity: Critical,
        failure: "port is not ACTIVE",
        why: "the port can carry data",
        hint: "check the subnet manager",
        awaits: SubnetManager,
        files: [&["{port}/state"], SWITCH],
        applies: port(|_, _| true),
        evaluate: |port, _| port::state(port.found),
    }
    PortLid {
        name: "port.lid",
        parents: [PortState],
        severity: Critical,
        failure: "no LID",
        why: "a subnet manager gave the port an address",
        hint: "check the subnet manager's log for this port's GUID",
        awaits: SubnetManager,
        files: [&["{port}/lid"]],
        applies: port(|port, _| port.is_infiniband()),
        evaluate: |port, _| port::lid(Id::PortLid, port.found, port.found.port.lid),
    }
    PortSmLid {
        name: "port.sm_lid",
        parents: [PortState],
        severity: Critical,
        failure: "no subnet manager LID",
        why: "the port knows its subnet manager",
        hint: "check the subnet manager's log for this port's GUID",
        awaits: SubnetManager,
        files: [&["{port}/sm_lid"]],
        applies: port(|port, _| port.is_infiniband()),
        evaluate: |port, _| port::lid(Id::PortSmLid, port.found, port.found.port.sm_lid),
    }
    PortSa {
        name: "port.sa",
        parents: [PortLid, PortSmLid],
        severity: Warning,
        failure: "no answer from the subnet administrator",
        why: "the subnet manager that brought the port up still answers",
        hint: "active ports keep working, but no port and no path can be added; see the subnet manager's log and restart it",
        awaits: SubnetManager,
        files: [IDENTITY],
        applies: port(|port, facts| port::contact(port.found, facts).is_some()),
        evaluate: |port, facts| port::administrator(port.found, facts),
    }
    PortRate {
        name: "port.rate",
        parents: [PortState],
        severity: Critical,
        failure: "too slow",
        why: "the port has at least the requested rate",
        hint: "check the cable and the switch port's speed; a degraded link often trains with fewer lanes",
        awaits: Setting,
        files: [&["{port}/rate"]],
        applies: port(|port, _| port.least_rate.is_some()),
        evaluate: |port, _| port::rate(port),
    }
    PortLanes {
        name: "port.lanes",
        parents: [PortState],
        severity: Warning,
        failure: "degraded link",
        why: "an InfiniBand link has more than one lane",
        hint: "check the cable, the transceiver and the switch port: the link has one lane, and most links have four",
        awaits: Setting,
        files: [&["{port}/rate"]],
        applies: port(|port, _| degraded::has_one_lane(port.found.port)),
        evaluate: |port, _| degraded::lanes(port.found),
    }
    PortSpeed {
        name: "port.speed",
        parents: [PortState],
        severity: Warning,
        failure: "slower than the other ports",
        why: "the port is as fast as the other ports of the same model of card in its subnet",
        hint: "check the cable, the transceiver and the switch port",
        awaits: Setting,
        files: [&["{port}/rate", "{device}/board_id"]],
        applies: port(|port, _| degraded::is_slower(port)),
        evaluate: |port, _| degraded::speed(port),
    }
    HcaPcie {
        name: "hca.pcie",
        parents: [DevicePresent],
        severity: Warning,
        failure: "degraded PCI Express link",
        why: "the PCI Express link of the HCA is as fast and as wide as the card and its slot allow",
        hint: "reseat the card and its riser, then look for PCIe errors in dmesg",
        awaits: Setting,
        files: [],
        applies: port(|port, facts| degraded::pcie_link(port.found, facts).is_some()),
        evaluate: |port, facts| degraded::pcie(port.found, facts),
    }
    IpoibPresent {
        name: "ipoib.present",
        parents: [PortLinkLayer],
        severity: Critical,
        failure: "no IPoIB interface",
        why: "the port has the requested IPoIB interface",
        hint: "run modprobe ib_ipoib; the reason of a failure is in dmesg",
        awaits: Driver,
        files: [IDENTITY],
        applies: ipoib(|_, _| true),
        evaluate: interface::present,
    }
    IpoibName {
        name: "ipoib.name",
        parents: [IpoibPresent],
        severity: Critical,
        failure: "wrong name",
        why: "the interface has the name that ifname= gives it",
        hint: "look for another program that names interfaces (udev's .link files)",
        awaits: Setting,
        files: [IDENTITY],
        applies: ipoib(|ipoib, _| ipoib.interface.wish.ifname.is_some()),
        evaluate: |ipoib, _| interface::name(&ipoib.interface),
    }
    IpoibMode {
        name: "ipoib.mode",
        parents: [IpoibPresent],
        severity: Critical,
        failure: "wrong IPoIB mode",
        why: "the interface is in the requested mode",
        hint: "look for another program that sets the mode (NetworkManager sets its profile's transport-mode)",
        awaits: Setting,
        files: [&["{netdev}/mode", "{netdev}/address"]],
        applies: ipoib(|ipoib, _| ipoib.interface.wish.mode.is_some()),
        evaluate: |ipoib, _| interface::mode(ipoib.interface.wish, ipoib.interface.netdev),
    }
    PortPkey {
        name: "port.pkey",
        parents: [PortState, IpoibPresent],
        severity: Critical,
        failure: "not a full member of the partition",
        why: "the subnet manager made the port a full member of the interface's partition",
        hint: "give the port this P_Key with full membership in the subnet manager's partitions.conf",
        awaits: SubnetManager,
        files: [&["{port}/pkeys/**", "{netdev}/broadcast"]],
        applies: ipoib(|_, _| true),
        evaluate: |ipoib, _| interface::pkey(ipoib.interface.netdev, ipoib.port),
    }
    IpoibUp {
        name: "ipoib.up",
        parents: [IpoibPresent],
        severity: Critical,
        failure: "interface is down",
        why: "the interface is administratively up",
        hint: "ibboot up sets the interface up: run ibboot up again; if the interface was up before, look for another program that sets the interface down",
        awaits: Setting,
        files: [&["{netdev}/flags"]],
        applies: ipoib(|_, _| true),
        evaluate: |ipoib, _| interface::up(ipoib.interface.netdev),
    }
    IpoibCarrier {
        name: "ipoib.carrier",
        parents: [PortState, PortPkey, IpoibUp],
        severity: Critical,
        failure: "port is ACTIVE, but the interface has no carrier",
        why: "the subnet administrator let the interface into its broadcast group",
        hint: "check that the subnet manager answers (ibboot check --sm, or sminfo on another node), and that its partitions.conf has the ipoib flag for this P_Key",
        awaits: Carrier,
        files: [&["{netdev}/flags", "{netdev}/carrier"]],
        applies: ipoib(|_, _| true),
        evaluate: interface::carrier,
    }
    IpoibGroup {
        name: "ipoib.group",
        parents: [IpoibCarrier],
        severity: Critical,
        failure: "the interface is outside of its broadcast group",
        why: "the broadcast group that the interface joined still exists",
        hint: "see the subnet manager's log",
        awaits: Carrier,
        files: [IDENTITY],
        applies: ipoib(|ipoib, facts| carrier::is_known(ipoib.interface.netdev, facts)),
        evaluate: |ipoib, facts| carrier::group(ipoib.interface.netdev, ipoib.port, facts),
    }
    BondPresent {
        name: "bond.present",
        parents: [],
        severity: Critical,
        failure: "no such bond",
        why: "the requested bond exists",
        hint: "ibboot up creates the bond; look for another program that removes it",
        awaits: Driver,
        files: [&["{netdev}/uevent", "{netdev}/bonding"]],
        applies: bond(|_, _| true),
        evaluate: bond::present,
    }
    BondMode {
        name: "bond.mode",
        parents: [BondPresent],
        severity: Critical,
        failure: "wrong bonding mode",
        why: "the bond is in the only mode that works with InfiniBand",
        hint: "look for another program that created the bond",
        awaits: Setting,
        files: [&["{netdev}/bonding/**"]],
        applies: bond(|_, _| true),
        evaluate: |bond, _| bond::mode(bond.found),
    }
    BondSlaves {
        name: "bond.slaves",
        parents: [BondPresent],
        severity: Critical,
        failure: "interfaces are missing from the bond",
        why: "the bond has all requested interfaces; a warning while it has at least one",
        hint: "see the checks of the missing interface, and dmesg",
        awaits: Members,
        files: [&["{netdev}/bonding/**"], IDENTITY],
        applies: bond(|_, _| true),
        evaluate: |bond, _| bond::slaves(bond),
    }
    BondOptions {
        name: "bond.options",
        parents: [BondPresent],
        severity: Warning,
        failure: "wrong bonding options",
        why: "the bonding driver accepted the requested options",
        hint: "see dmesg; modinfo bonding lists the options",
        awaits: Setting,
        files: [&["{netdev}/bonding/**"]],
        applies: bond(|bond, _| !bond.wish.options.is_empty()),
        evaluate: |bond, _| bond::options(bond.wish, bond.found),
    }
    BondCarrier {
        name: "bond.carrier",
        parents: [BondMode, BondSlaves],
        severity: Critical,
        failure: "the bond has no carrier",
        why: "the bond is up and one of its interfaces carries its traffic",
        hint: "see the checks of the interfaces of the bond",
        awaits: Carrier,
        files: [&["{netdev}/flags", "{netdev}/carrier", "{netdev}/bonding/**"]],
        applies: bond(|_, _| true),
        evaluate: |bond, facts| bond::carrier(bond.netdev, bond.found, facts),
    }
    IpoibMtu {
        name: "ipoib.mtu",
        parents: [IpoibCarrier, IpoibMode, BondCarrier],
        severity: Critical,
        failure: "wrong MTU",
        why: "the interface has the requested MTU",
        hint: "ibboot up sets the MTU: run ibboot up again; if the MTU was right before, look for another program that sets it",
        awaits: Setting,
        files: [&["{netdev}/mtu"], GRANTED],
        applies: interface(|interface, _| !interface.is_bond || interface::has_mtu(interface.wish)),
        evaluate: |interface, _| interface::mtu(interface.wish, interface.netdev),
    }
    LeasePresent {
        name: "lease.present",
        parents: [IpoibCarrier, BondCarrier],
        severity: Critical,
        failure: "DHCP lease is missing or not renewed",
        why: "a DHCP server granted an address, and the lease is valid",
        hint: "a DHCP server or relay must listen on this network",
        awaits: Lease,
        files: [&["{netdev}/ifindex"], GRANTED],
        applies: interface(|interface, _| interface.wish.dhcp.is_some()),
        evaluate: |interface, facts| lease::evaluate(interface.wish, interface.netdev, facts),
    }
    Lease6Present {
        name: "lease6.present",
        parents: [IpoibCarrier, BondCarrier],
        severity: Critical,
        failure: "DHCPv6 lease is missing or not renewed",
        why: "a DHCPv6 server granted an address, and the lease is valid",
        hint: "a DHCPv6 server or relay must listen on this network",
        awaits: Lease,
        files: [&["{netdev}/ifindex"], GRANTED, ADDRESSES],
        applies: interface(|interface, facts| lease::is_wanted6(interface.wish, interface.netdev, facts)),
        evaluate: |interface, facts| lease::evaluate6(interface.wish, interface.netdev, facts),
    }
    AddressPresent {
        name: "address.present",
        parents: [IpoibCarrier, BondCarrier, LeasePresent, Lease6Present],
        severity: Critical,
        failure: "address is missing",
        why: "the interface has the requested IP addresses",
        hint: "ibboot up sets the address: run ibboot up again; if the address was set before, look for another program that removes addresses",
        awaits: Address,
        files: [&["{netdev}/ifindex"], GRANTED, ADDRESSES],
        applies: interface(|interface, _| interface.wish.is_addressed()),
        evaluate: |interface, facts| interface::addresses(interface.wish, interface.netdev, facts),
    }
    RoutePresent {
        name: "route.present",
        parents: [AddressPresent],
        severity: Critical,
        failure: "route is missing or not used",
        why: "the requested routes exist, and the default route of the boot device is used",
        hint: "ibboot up sets the route: run ibboot up again; if the route was set before, look for another program that removes routes",
        awaits: Setting,
        files: [&["{netdev}/ifindex"], GRANTED, ROUTES],
        applies: interface(|interface, _| interface::has_routes(interface.wish)),
        evaluate: |interface, facts| interface::routes(interface.wish, interface.netdev, facts),
    }
    ServerRdma {
        name: "server.rdma",
        parents: [],
        severity: Critical,
        failure: "not verified over RDMA",
        why: "the server answers the RDMA connection manager, not only TCP",
        hint: "load rdma_cm on the server; look for a firewall on UDP port 4791 (RoCE)",
        awaits: Server,
        files: [&[SERVERS]],
        applies: server(|_, _| true),
        evaluate: server::answers,
    }
    RootMounted {
        name: "root.mounted",
        parents: [],
        severity: Critical,
        failure: "wrong root file system",
        why: "the root file system is on the requested server",
        hint: "look at: findmnt /",
        awaits: Setting,
        files: [ROOT],
        complete: true,
        applies: root(|_, _| true),
        evaluate: |root, facts| root::mounted(root.wish, facts),
    }
    RootTransport {
        name: "root.transport",
        parents: [RootMounted],
        severity: Critical,
        failure: "wrong transport of the root file system",
        why: "the mount options of NFS, the iSCSI session or the NVMe controller name the requested transport",
        hint: "look at: findmnt -o OPTIONS /",
        awaits: Setting,
        files: [ROOT],
        complete: true,
        applies: root(|root, _| !root.wish.root.protocol.is_live()),
        evaluate: |root, facts| root::transport(root.wish, facts),
    }
    RootPath {
        name: "root.path",
        parents: [RootMounted, RootTransport],
        severity: Critical,
        failure: "the root file system does not use a verified link",
        why: "the connection or the route to the server uses a verified link",
        hint: "look at: rdma resource show cm_id; ip route get SERVER",
        awaits: Setting,
        files: [ROOT, ROUTES, CONNECTIONS],
        applies: root(|_, _| true),
        evaluate: |root, facts| root::path(root.wish, root.links, facts),
    }
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
