// SPDX-License-Identifier: MIT OR Apache-2.0
//! The port is ACTIVE, but the interface has no carrier: finds the reason from the answer of the
//! subnet administrator.

use super::checks::Id;
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::rdma::mad::Group;
use crate::rdma::sa::Answer;
use crate::verify::report::Finding;
use crate::wish::ipoib::FULL_MEMBER;

/// The finding for an interface that should have carrier.
pub fn missing(netdev: &Netdev, port: PortRef<'_>, facts: &Facts) -> Finding {
    let failed = |found: &str| Finding::failed(Id::IpoibCarrier, found, "carrier");
    let is_of_interface = |sa: &&crate::rdma::sa::SaAnswer| sa.interface == netdev.ifname;
    let Some(contact) = facts.subnet_administrator.iter().find(is_of_interface) else {
        return failed("no carrier");
    };
    let lid = contact.sm_lid;
    let pkey = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.pkey);
    let partition = pkey.map_or_else(
        || "this P_Key".to_owned(),
        |pkey| format!("P_Key {:#06x}", pkey | FULL_MEMBER),
    );
    match &contact.answer {
        Answer::Alive => failed("no carrier"),
        Answer::NotAsked(why) => {
            let usual = Id::IpoibCarrier.row().hint;
            failed("no carrier").hint(&format!("{usual} (not queried: {why})"))
        }
        Answer::Silent => failed(&format!("the subnet administrator at LID {lid} does not answer"))
            .hint("the subnet manager that brought the port up hangs, is overloaded or is gone: see its log and restart it"),
        Answer::Refused(status) => failed(&format!(
            "the subnet administrator at LID {lid} refuses: status {:#06x} ({})",
            status.0,
            status.words()
        ))
        .hint("see the subnet manager's log for this port's GUID"),
        Answer::NoGroup => failed(&format!(
            "the subnet administrator at LID {lid} answers and has no broadcast group for {partition}"
        ))
        .hint("put the ipoib flag on this partition in the subnet manager's partitions.conf"),
        // A limited membership is no reason: opensm (mcmr_rcv_join_mgrp, osm_sa_mcmember_record.c) and
        // opafm (sa_McMemberRecord_Set, sa_McMemberRecord.c) let a limited member join.
        Answer::Joinable { group, port_mtu } => unfit(group, *port_mtu, port).unwrap_or_else(|| {
            failed(&format!(
                "the subnet administrator at LID {lid} answers and has the broadcast group of {partition}"
            ))
            .hint("the kernel joins again within 16 s: if the error persists, look for \"multicast join failed\" in dmesg")
        }),
    }
}

/// The finding if the group requires more than the port supports: the subnet administrator refuses
/// such a port.
fn unfit(group: &Group, port_mtu: Option<u32>, port: PortRef<'_>) -> Option<Finding> {
    let failed = |found: &str| Finding::failed(Id::IpoibCarrier, found, "carrier");
    if let (Some(required), Some(supported)) = (group.mtu, port_mtu)
        && required > supported
    {
        let found = format!(
            "the broadcast group has MTU {required}, but this port supports only {supported}"
        );
        return Some(failed(&found).hint(
            "lower the group's mtu= in partitions.conf to a value that every member supports",
        ));
    }
    let required = f64::from(group.megabits?) / 1000.0;
    let rate = port.port.rate.as_ref();
    let actual = rate.filter(|rate| !rules::may_be_faster(port, rate))?.gbps;
    (required > actual).then(|| {
        failed(&format!(
            "the broadcast group has rate {required} Gb/sec, but this port runs at {actual} Gb/sec"
        ))
        .hint("lower the group's rate= in partitions.conf, or find out why the port is slow (cable, lanes)")
    })
}
