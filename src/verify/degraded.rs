// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the checks of links that work and could be better: warnings that nothing has to request.

use super::checks::Id;
use super::object::Port;
use crate::facts::pcie::PcieLink;
use crate::facts::{self, Facts, PortRef, rules};
use crate::rdma::types::LinkLayer;
use crate::verify::finding::Finding;

/// Whether an InfiniBand link works with one of its four lanes. A port with two lanes may be half of
/// a splitter cable; a plane of an XDR port has one lane; SDR may stand for an unknown speed, whose
/// lanes are correct nevertheless.
pub fn has_one_lane(port: &facts::Port) -> bool {
    let rate = port.rate.as_ref();
    port.link_layer == Some(LinkLayer::InfiniBand)
        && rate.is_some_and(|rate| rate.width == 1 && rate.speed != "XDR")
}

/// Finding of `port.lanes` for a port of which [`has_one_lane`] is true.
pub fn lanes(found: PortRef<'_>) -> Finding {
    let Some(rate) = &found.port.rate else {
        return Finding::unknown(Id::PortLanes);
    };
    let finding = Finding::failed(Id::PortLanes, &rate.text, "4 lanes");
    match rules::with_three_lanes(found, rate) {
        Some(_) => finding.hint(
            "check the cable, the transceiver and the switch port: the link lost at least one of its four lanes \
             (the kernel reports a link with two or three lanes as one lane)",
        ),
        None => finding,
    }
}

/// Whether `port.speed` applies: a port of the same kind is faster, nobody requested a rate of this
/// port, and `port.lanes` does not already give the reason.
pub fn is_slower(port: &Port<'_>) -> bool {
    port.faster.is_some() && port.least_rate.is_none() && !has_one_lane(port.found.port)
}

/// Finding of `port.speed` for a port of which [`is_slower`] is true.
pub fn speed(port: &Port<'_>) -> Finding {
    let rate = |port: PortRef<'_>| port.port.rate.clone();
    let (Some(found), Some(faster)) = (rate(port.found), port.faster) else {
        return Finding::unknown(Id::PortSpeed);
    };
    let other = rate(faster).map_or_else(String::new, |rate| rate.text);
    let expected = format!("{other} like {}", faster.name());
    // The device has another name in the initramfs, and its PCI address in both.
    let device = &port.found.device;
    let selector = match device.card() {
        Some(address) => format!("pci={address}"),
        None => format!("{}:{}", device.ifname, port.found.port.port),
    };
    Finding::failed(Id::PortSpeed, &found.text, &expected).hint(&format!(
        "check the cable, the transceiver and the switch port; if this speed is intended: \
         rd.ib.rate={selector}={}",
        found.gbps
    ))
}

/// The PCI Express link of a port's HCA. Without one, `hca.pcie` does not apply: an unknown finding
/// would keep the port from being verified, for a check that is at most a warning.
pub fn pcie_link(port: PortRef<'_>, facts: &Facts) -> Option<PcieLink> {
    facts.function(port.device.card()?)?.pcie
}

/// Finding of `hca.pcie`: the link is as fast and as wide as both of its ends allow.
pub fn pcie(port: PortRef<'_>, facts: &Facts) -> Finding {
    let id = Id::HcaPcie;
    match pcie_link(port, facts) {
        None => Finding::unknown(id),
        Some(link) if link.is_degraded() => {
            Finding::failed(id, &link.current.to_string(), &link.possible.to_string())
        }
        Some(link) => Finding::ok(id, &link.current.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::parse;

    #[test]
    fn one_lane_is_degraded_and_two_may_be_a_splitter() {
        let (infiniband, ethernet) = (LinkLayer::InfiniBand, LinkLayer::Ethernet);
        for (layer, rate, expected) in [
            (infiniband, "400 Gb/sec (4X NDR)", false),
            (infiniband, "200 Gb/sec (2X NDR)", false),
            (infiniband, "100 Gb/sec (1X NDR)", true),
            (infiniband, "50 Gb/sec (1X HDR)", true),
            (infiniband, "2.5 Gb/sec (1X SDR)", true),
            (infiniband, "10 Gb/sec (4X SDR)", false),
            (infiniband, "200 Gb/sec (1X XDR)", false),
            (ethernet, "25 Gb/sec (1X EDR)", false),
        ] {
            let port = facts::Port {
                link_layer: Some(layer),
                rate: parse::rate(rate).ok(),
                ..facts::Port::default()
            };
            assert_eq!(has_one_lane(&port), expected, "{layer} {rate}");
        }
        assert!(!has_one_lane(&facts::Port::default()));
    }
}
