// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what the subnet administrator answers about the broadcast group of an interface: why the
//! interface has no carrier, or whether carrier still means that it is a member.

use super::checks::Id;
use super::port;
use crate::facts::{Facts, Netdev, PortRef, rules};
use crate::rdma::mad::Group;
use crate::rdma::sa::{Answer, SaAnswer};
use crate::verify::finding::Finding;
use crate::wish::ipoib::FULL_MEMBER;

fn contact<'a>(netdev: &Netdev, facts: &'a Facts) -> Option<&'a SaAnswer> {
    let mut answers = facts.subnet_administrator.iter();
    answers.find(|answer| answer.interface == netdev.ifname)
}

/// The P_Key of the interface, in words.
fn partition(netdev: &Netdev) -> String {
    let pkey = netdev.ipoib.as_ref().and_then(|ipoib| ipoib.pkey);
    pkey.map_or_else(
        || "this P_Key".to_owned(),
        |pkey| format!("P_Key {:#06x}", pkey | FULL_MEMBER),
    )
}

/// Whether the interface has carrier, and the subnet administrator answered about its broadcast group.
pub fn is_known(netdev: &Netdev, facts: &Facts) -> bool {
    let answer = contact(netdev, facts).map(|contact| &contact.answer);
    let is_known = matches!(answer, Some(Answer::NoGroup | Answer::Joinable { .. }));
    is_known && netdev.carrier == Some(true)
}

/// Finding of `ipoib.group`: the group that the interface joined still exists, and takes its port. The
/// kernel keeps the carrier while it joins again (ipoib_mcast_restart_task of ipoib_multicast.c).
pub fn group(netdev: &Netdev, port: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::IpoibGroup;
    let Some(contact) = contact(netdev, facts) else {
        return Finding::unknown(id);
    };
    match &contact.answer {
        Answer::NoGroup => no_group(id, contact.sm_lid, &partition(netdev)),
        Answer::Joinable { group, port_mtu } => unfit(id, group, *port_mtu, port)
            .unwrap_or_else(|| Finding::ok(id, &format!("the group of {}", partition(netdev)))),
        _ => Finding::unknown(id),
    }
}

fn no_group(id: Id, lid: u32, partition: &str) -> Finding {
    let found = format!(
        "the subnet administrator at LID {lid} answers and has no broadcast group for {partition}"
    );
    Finding::failed(id, &found, expected(id))
        .hint("put the ipoib flag on this partition in the subnet manager's partitions.conf")
}

fn expected(id: Id) -> &'static str {
    match id {
        Id::IpoibGroup => "a group that the port can join",
        _ => "carrier",
    }
}

/// The finding for an interface that should have carrier.
pub fn missing(netdev: &Netdev, port: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::IpoibCarrier;
    let failed = |found: &str| Finding::failed(id, found, expected(id));
    let Some(contact) = contact(netdev, facts) else {
        return failed("no carrier");
    };
    let (lid, partition) = (contact.sm_lid, partition(netdev));
    match &contact.answer {
        Answer::Alive => failed("no carrier"),
        Answer::NotAsked(why) => {
            failed(&format!("ibboot could not query the subnet administrator: {why}"))
        }
        Answer::Silent => failed(&format!("the subnet administrator at LID {lid} does not answer"))
            .hint("restart the subnet manager after you have read its log: it configured the port, but it hangs, is overloaded or has ended"),
        Answer::Refused(status) => failed(&format!(
            "the subnet administrator at LID {lid} refuses: status {:#06x} ({})",
            status.0,
            status.words()
        ))
        .hint(&format!("see the subnet manager's log for {}", port::guid(port))),
        Answer::NoGroup => no_group(id, lid, &partition),
        // A limited membership is no reason: opensm (mcmr_rcv_join_mgrp, osm_sa_mcmember_record.c) and
        // opafm (sa_McMemberRecord_Set, sa_McMemberRecord.c) let a limited member join.
        Answer::Joinable { group, port_mtu } => unfit(id, group, *port_mtu, port).unwrap_or_else(|| {
            failed(&format!(
                "the subnet administrator at LID {lid} answers and has the broadcast group of {partition}"
            ))
            .hint("the kernel joins again within 16 s: if the error persists, look for \"multicast join failed\" in dmesg")
        }),
    }
}

/// The finding if the group requires more than the port supports: the subnet administrator refuses
/// such a port.
fn unfit(id: Id, group: &Group, port_mtu: Option<u32>, port: PortRef<'_>) -> Option<Finding> {
    let failed = |found: &str| Finding::failed(id, found, expected(id));
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
    let rate = rate.filter(|rate| !rules::may_be_faster(port, rate))?;
    let (most, limit) = match rules::with_three_lanes(port, rate) {
        Some(most) => (most, " at most"),
        None => (rate.gbps, ""),
    };
    (required > most).then(|| {
        failed(&format!(
            "the broadcast group has rate {required} Gb/sec, but this port runs at {most} Gb/sec{limit}"
        ))
        .hint("lower the group's rate= in partitions.conf, or find out why the port is slow (cable, lanes)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Port};
    use crate::rdma::types::LinkLayer;

    #[test]
    fn a_group_that_requires_what_the_port_has_fits() {
        let device = Device {
            driver: Some("mlx5_core".to_owned()),
            ..Device::default()
        };
        let is_unfit = |rate: &str, group_mtu, megabits| {
            let port = Port {
                link_layer: Some(LinkLayer::InfiniBand),
                rate: crate::rdma::parse::rate(rate).ok(),
                ..Port::default()
            };
            let group = Group {
                mgid: "ff12::1".parse().unwrap(),
                mlid: 0xc000,
                qkey: 0,
                pkey: 0xffff,
                mtu: Some(group_mtu),
                megabits: Some(megabits),
                sl: 0,
                scope: 2,
                join_state: 1,
            };
            let port = PortRef {
                device: &device,
                port: &port,
            };
            unfit(Id::IpoibGroup, &group, Some(2048), port).is_some()
        };
        let hdr = "200 Gb/sec (4X HDR)";
        assert!(!is_unfit(hdr, 2048, 200_000));
        assert!(is_unfit(hdr, 4096, 200_000));
        assert!(is_unfit(hdr, 2048, 400_000));
        // The kernel says SDR of a speed that it does not know.
        assert!(!is_unfit("10 Gb/sec (4X SDR)", 2048, 400_000));
    }
}
