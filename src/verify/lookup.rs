// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: which ports the wishes mean, with the minimum rate and the link layer of each port.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::siblings::Siblings;
use crate::facts::select::{self, Pinned, Ports};
use crate::facts::{Facts, PortRef, rules};
use crate::rdma::types::LinkLayer;
use crate::wish::expectation::{Expectation, LinkWish, PortPin, Rate};
use crate::wish::selector::Selector;

/// Results that `verify` uses more than once.
pub struct Lookup<'a> {
    pub facts: &'a Facts,
    /// The named links.
    pub links: &'a [LinkWish],
    pub ports: Ports<'a>,
    pub siblings: Siblings<'a>,
    rates: Vec<LeastRate>,
    /// The names of ports, and the link layer requested of them; none: any.
    layers: Vec<(BTreeSet<String>, Option<LinkLayer>)>,
    /// The ports whose interface is named by a link.
    pub named: BTreeSet<String>,
}

/// The minimum rate of an `rd.ib.rate=`.
struct LeastRate {
    /// The names of the ports; none: all ports.
    ports: Option<BTreeSet<String>>,
    /// False: some of the ports may be others that share their identity.
    is_certain: bool,
    /// In Mb/s.
    megabits: u32,
}

impl LeastRate {
    /// Of a port: that of the last matching argument, or the highest one if it is not certain which
    /// ports the last arguments match.
    fn of(port: &str, rates: &[LeastRate]) -> Option<u32> {
        let is_of = |rate: &&LeastRate| {
            let mut ports = rate.ports.iter();
            ports.all(|ports| ports.contains(port))
        };
        let mut least = None;
        for rate in rates.iter().rev().filter(is_of) {
            least = least.max(Some(rate.megabits));
            if rate.is_certain {
                break;
            }
        }
        least
    }
}

impl<'a> Lookup<'a> {
    /// The results for one snapshot.
    pub fn new(expectation: &'a Expectation, facts: &'a Facts) -> Lookup<'a> {
        let ports = Ports::new(facts);
        let meant = |pin: Option<&PortPin>, selector: &Selector| match pin {
            Some(pin) => ports.of_pin(pin),
            None => Pinned {
                ports: select::ports(selector, facts),
                is_certain: true,
            },
        };
        let names = |ports: &[PortRef<'_>]| ports.iter().map(PortRef::name).collect();
        let rates = expectation.rates.iter().map(|rate| {
            let selector = rate.selector.as_ref();
            let meant = selector.map(|selector| meant(rate.port.as_ref(), selector));
            LeastRate {
                is_certain: meant.as_ref().is_none_or(|meant| meant.is_certain),
                ports: meant.map(|meant| names(&meant.ports)),
                megabits: rate.megabits,
            }
        });
        let rates = rates.collect();
        let layers = expectation.link_layers.iter().map(|layer| {
            let meant = meant(layer.port.as_ref(), &layer.selector);
            (names(&meant.ports), layer.link_layer)
        });
        let layers = layers.collect();
        Lookup {
            facts,
            links: &expectation.links,
            named: rules::named_interfaces(expectation, &ports),
            ports,
            siblings: Siblings::of(facts),
            rates,
            layers,
        }
    }

    /// The minimum rates of no port, one line each: nothing is checked against them. A port that
    /// was there when the links were handed over may be gone: its own checks report that.
    pub fn lost_rates(&self, expectation: &Expectation) -> Vec<String> {
        let rates = expectation.rates.iter().zip(&self.rates);
        let is_lost = |found: &LeastRate| found.ports.as_ref().is_some_and(BTreeSet::is_empty);
        let lost = rates.filter(|(rate, found)| rate.port.is_none() && is_lost(found));
        let line = |(rate, _): (&Rate, _)| {
            let (port, gbps) = (rate.selector.as_ref()?, f64::from(rate.megabits) / 1000.0);
            Some(format!("rd.ib.rate={port}={gbps}: no port is {port}"))
        };
        lost.filter_map(line).collect()
    }

    /// The wish with the link layer that `rd.ib.porttype=` requests of this port, unless the wish has
    /// one.
    pub fn with_layer<'w>(&self, wish: &'w LinkWish, port: PortRef<'_>) -> Cow<'w, LinkWish> {
        let name = port.name();
        let mut layers = self.layers.iter().rev();
        let requested = layers.find(|(ports, _)| ports.contains(&name));
        match requested {
            Some((_, Some(layer))) if wish.link_layer.is_none() => Cow::Owned(LinkWish {
                link_layer: Some(*layer),
                ..wish.clone()
            }),
            _ => Cow::Borrowed(wish),
        }
    }

    /// Minimum rate of this port in Mb/s.
    pub fn least_rate(&self, wish: &LinkWish, port: PortRef<'_>) -> Option<u32> {
        let of_port = || LeastRate::of(&port.name(), &self.rates);
        wish.megabits.or_else(of_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rate_counts_and_of_uncertain_ones_the_highest() {
        let rate = |ports: &[&str], is_certain, megabits| LeastRate {
            ports: (!ports.is_empty()).then(|| ports.iter().copied().map(str::to_owned).collect()),
            is_certain,
            megabits,
        };
        let rates = [
            rate(&[], true, 100),
            rate(&["mlx5_0/1"], true, 40),
            rate(&["rxe0/1", "rxe1/1"], false, 10),
            rate(&["rxe0/1", "rxe1/1"], false, 25),
        ];
        for (port, expected) in [("mlx5_0/1", 40), ("mlx5_1/1", 100), ("rxe0/1", 100)] {
            assert_eq!(LeastRate::of(port, &rates), Some(expected), "{port}");
        }
        assert_eq!(LeastRate::of("rxe1/1", &rates[2..]), Some(25));
        assert_eq!(LeastRate::of("mlx5_0/1", &rates[2..]), None);
    }
}
