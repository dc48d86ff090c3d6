// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: which ports count where no argument names a port, and what `plan` warns of before a boot
//! depends on it.

use kernel_cmdline::{Guid, Handover, PortType};

use super::{Draft, Plan};
use crate::dhcp::identity::{RequestedId, Sender};
use crate::facts::{Facts, Function};
use crate::rdma::types::LinkLayer;
use crate::request::interfaces::InterfaceWish;
use crate::system::drivers::IPOIB;
use crate::system::modules::Found;
use crate::wish::expectation::{Expectation, Require};
use crate::wish::ipoib::IpoibWish;
use crate::wish::selector::{Means, Selector};

/// What a command line and a machine say about the link layer of the ports that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Signs {
    /// `rd.ib.require=ib`, `eth` or with one of them in front.
    named: Option<LinkLayer>,
    /// `rd.ib.mode=` or `rd.ib.mtu=` of whichever port satisfies the requirement.
    is_ipoib_of_any: bool,
    /// `rd.ib.link=`, `rd.ib.roce=`, or a port type eth.
    has_ethernet: bool,
    /// An IPoIB interface, or the module ib_ipoib.
    has_ipoib: bool,
    /// The machine has an InfiniBand card or port.
    is_infiniband_machine: bool,
}

/// The link layer of the ports that count; none for every link layer. Without a word about
/// Ethernet, the port of a management card must not stand for the fabric.
fn link_layer(signs: Signs) -> Option<LinkLayer> {
    let infiniband = Some(LinkLayer::InfiniBand);
    match signs {
        Signs { named: Some(_), .. } => signs.named,
        Signs {
            is_ipoib_of_any: true,
            ..
        } => infiniband,
        Signs {
            has_ethernet: true, ..
        } => None,
        Signs {
            has_ipoib: true, ..
        }
        | Signs {
            is_infiniband_machine: true,
            ..
        } => infiniband,
        _ => None,
    }
}

/// Whether only a later look at the machine can say which ports count.
fn is_open(signs: Signs) -> bool {
    link_layer(signs).is_none() && !signs.has_ethernet
}

impl Plan {
    /// Only InfiniBand ports count from now on, if the machine has InfiniBand now and nothing else says
    /// which ports count. Before its driver has probed an mlx4 card, nothing shows whether its ports are
    /// InfiniBand ports.
    pub fn narrow(&self, expectation: &mut Expectation, facts: &Facts) {
        if self.is_layer_open
            && facts.has_infiniband()
            && let Some(any) = &mut expectation.any_port
        {
            any.link_layer = Some(LinkLayer::InfiniBand);
        }
    }

    /// Whether a card that has no RDMA device yet may still [narrow](Plan::narrow) the ports that
    /// count.
    pub fn is_undecided(&self, expectation: &Expectation, facts: &Facts) -> bool {
        let any = expectation.any_port.as_ref();
        let may_be = |function: &Function| function.is_of_both() && function.is_missing();
        self.is_layer_open
            && any.is_some_and(|any| any.link_layer.is_none())
            && facts.functions.iter().any(may_be)
    }
}

impl Draft<'_> {
    /// The link layer of the ports that count.
    pub(super) fn link_layer(&self, require: Require) -> Option<LinkLayer> {
        link_layer(self.signs(require))
    }

    /// Whether only a later look at the machine can say which ports count.
    pub(super) fn is_layer_open(&self, require: Require) -> bool {
        is_open(self.signs(require))
    }

    fn signs(&self, require: Require) -> Signs {
        let request = self.request;
        let of_any = request.any_interface.is_some();
        let to_ethernet = |(_, to): &(Selector, PortType)| *to == PortType::Eth;
        Signs {
            named: request.required.link_layer(),
            is_ipoib_of_any: of_any && require != Require::All,
            has_ethernet: !request.links.is_empty()
                || !request.roce.is_empty()
                || request.port_types.iter().any(|t| to_ethernet(&t.value)),
            has_ipoib: of_any
                || !request.interfaces.is_empty()
                || request.modules.iter().any(|m| m.value == IPOIB),
            is_infiniband_machine: self.inventory.facts.has_infiniband(),
        }
    }

    /// The ports and HCAs that do not count: those that the argument excludes, and of every port
    /// the HCAs whose driver is blacklisted or barred.
    pub(super) fn except(&self, require: Require) -> Vec<Selector> {
        let mut except = self.request.required.except().to_vec();
        if require == Require::All {
            let functions = self.expected_functions().filter(|f| f.is_missing());
            let left = functions.filter(|f| f.modules.iter().any(|m| self.is_left(&m.name)));
            let selector = |f: &Function| Selector::parse(&format!("pci={}", f.address));
            except.extend(left.filter_map(selector));
        }
        except
    }

    /// A blacklist has the module, or `module_blacklist=`, and no argument names it.
    fn is_left(&self, module: &str) -> bool {
        let mut named = self.request.modules.iter();
        let is_forbidden = self.blacklisted(module).is_some() || self.barred(module).is_some();
        is_forbidden && !named.any(|named| named.value == module)
    }

    /// The HCAs on the bus that must have an RDMA device.
    fn expected_functions(&self) -> impl Iterator<Item = &Function> {
        let functions = self.inventory.facts.functions.iter();
        functions.filter(|function| function.expected)
    }

    /// The HCAs that no module of this image can make an RDMA device of, each with the module.
    pub(super) fn undriven(&self) -> impl Iterator<Item = (&Function, &str)> {
        self.expected_functions().filter_map(|function| {
            let modules = &self.inventory.modules;
            let is_missing = |name: &&str| modules.find(name) == Found::Missing;
            let mut names = function.modules.iter().map(|m| m.name.as_str()).rev();
            let missing = names.find(is_missing)?;
            (function.is_missing() && !self.is_left(missing)).then_some((function, missing))
        })
    }

    /// What may go wrong on this machine although the plan can be carried out.
    pub(super) fn warn(&mut self, expectation: &Expectation) {
        let mut warnings = Vec::new();
        if self.request.has_wrong_requirement {
            warnings.push(format!(
                "rd.ib.require= has an error; the requirement is now: {}",
                expectation.requirement()
            ));
        }
        let is_planned = |name: &str| expectation.modules.iter().any(|m| m.name == name);
        for (function, module) in self.undriven().filter(|(_, name)| !is_planned(name)) {
            let index = &self.inventory.modules;
            warnings.push(format!(
                "{} {}: its driver {module} is not {}; {}",
                function.address,
                function.id,
                index.place(),
                index.remedy(module)
            ));
        }
        warnings.extend(self.inventory.facts.unread_bus().map(|unread| {
            format!(
                "{}: {}: the drivers of the HCAs are not known; name them with rd.driver.post=",
                unread.path, unread.why
            )
        }));
        warnings.extend(self.numbered_by_chance());
        warnings.extend(self.counted_by_chance(expectation));
        warnings.extend(self.unknown_to_networkd());
        self.warnings.extend(warnings);
    }

    /// The kernel numbers ib0, ib1 in the order in which the HCAs are ready.
    fn numbered_by_chance(&self) -> Option<String> {
        let is_numbered = |interface: &InterfaceWish| {
            let number = interface.port.as_str().strip_prefix("ib");
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            number.is_some_and(is_number) && !interface.ipoib.addresses.is_empty()
        };
        let cards = self.expected_functions().count();
        let interfaces = self.request.interfaces.iter();
        let named: Vec<&str> = interfaces
            .filter(|interface| is_numbered(&interface.value))
            .map(|interface| interface.value.name.as_str())
            .collect();
        (self.request.async_probe && cards > 1 && !named.is_empty()).then(|| {
            format!(
                "rd.ib.async_probe=1: the kernel numbers {} as the {cards} HCAs become ready, so a static address may be \
                 on the wrong port; name the interface by its hardware address or with ifname=",
                named.join(" and ")
            )
        })
    }

    /// An Ethernet card without an RDMA device is no failure, and nothing shows that its driver still
    /// probes the card.
    fn counted_by_chance(&self, expectation: &Expectation) -> Option<String> {
        let any = expectation.any_port.as_ref()?;
        let counts_ethernet = any.link_layer != Some(LinkLayer::InfiniBand);
        let functions = self.inventory.facts.functions.iter();
        let cards = functions.filter(|function| function.is_ethernet()).count();
        let is_open = expectation.require == Require::All && counts_ethernet && cards > 1;
        (self.request.async_probe && is_open).then(|| {
            let number = match any.link_layer {
                Some(LinkLayer::Ethernet) => "eth:N",
                _ => "N",
            };
            format!(
                "rd.ib.async_probe=1: an Ethernet card counts only after its driver has probed it, so the boot may continue \
                 without some of the cards: write their number in place of all (rd.ib.require={number})"
            )
        })
    }

    /// The next owner of the lease must send the same client identifier.
    fn unknown_to_networkd(&self) -> Option<String> {
        let request = self.request;
        let handover = request.handover.as_ref();
        handover.filter(|to| to.value == Handover::Networkd)?;
        let interfaces = request.interfaces.iter().map(|interface| &interface.value);
        let interfaces = interfaces.map(|interface| {
            let sender = Sender::Interface(self.guid(&interface.port));
            (&interface.name, &interface.ipoib, sender)
        });
        let bonds = request.bonds.iter().map(|bond| &bond.value.interface);
        let bonds = bonds.map(|bond| (&bond.name, &bond.ipoib, Sender::Bond));
        interfaces.chain(bonds).find_map(|(name, ipoib, sender)| {
            let id = lost_to_networkd(ipoib, sender)?;
            let problem = match id.is_guid() {
                true => format!("sends only the port GUID that {name} has then"),
                false => format!("cannot send the client identifier of {name}"),
            };
            // For a bond networkd cannot send the GUID of this boot either.
            let instead = match (sender, id) {
                (Sender::Bond, _) => String::new(),
                (_, RequestedId::Bytes(_)) => format!(
                    " or rd.ib.dhcp.client-id={name}:guid in place of rd.net.dhcp.client-id="
                ),
                _ => format!(" or rd.ib.dhcp.client-id={name}:guid"),
            };
            Some(format!(
                "rd.ib.handover=networkd: systemd-networkd {problem}, so the server may grant another address; use \
                 rd.ib.handover=auto{instead}"
            ))
        })
    }

    /// The port GUID that a selector names or the interface of this name has here.
    fn guid(&self, port: &Selector) -> Option<Guid> {
        match port.means() {
            Means::Guid(address) => address.guid(),
            _ => self.inventory.facts.netdev(port.as_str())?.port_guid(),
        }
    }

    /// Plans the drivers of HCAs that the image lacks, if it has the driver of no HCA: the
    /// refusals say what to add.
    pub(super) fn refuse_undriven(&mut self) {
        let missing: Vec<String> = self.undriven().map(|(_, name)| name.to_owned()).collect();
        let requested = self.request.requested_by.clone();
        for name in missing {
            self.load(&name, requested.as_ref());
        }
    }
}

/// The client identifier that systemd-networkd cannot send in one of the families.
fn lost_to_networkd(ipoib: &IpoibWish, sender: Sender) -> Option<&RequestedId> {
    let four = ipoib.dhcp.as_ref().map(|dhcp| &dhcp.client_id);
    let six = ipoib.dhcp6.as_ref().map(|dhcp6| &dhcp6.client_id);
    four.filter(|id| !id.fits_networkd(sender))
        .or(six.filter(|id| !id.fits_networkd6()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Inventory, plan};
    use crate::request::Request;
    use crate::system::root::Root;
    use crate::wish::expectation::Depth;

    #[test]
    fn a_card_that_is_probed_after_the_plan_decides_which_ports_count() {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys");
        let root = |name: &str| Root::new(sys.join(name));
        let card = Facts::gather(&root("connectx3-dual"), None, &[], Depth::Ports);
        let mut unprobed = card.clone();
        unprobed.devices.clear();
        for function in &mut unprobed.functions {
            function.devices.clear();
            (function.class, function.infiniband) = ("0280".to_owned(), false);
        }
        let inventory = Inventory::read(&root("soft-roce")).unwrap();
        let layers = |cmdline: &str| {
            let plan = plan(&Request::from_text(cmdline), &inventory);
            let mut expectation = plan.expectation.clone();
            let look = |facts: &Facts| {
                plan.narrow(&mut expectation, facts);
                let any = expectation.any_port.as_ref().unwrap();
                (any.link_layer, plan.is_undecided(&expectation, facts))
            };
            [&inventory.facts, &unprobed, &card, &unprobed].map(look)
        };
        let infiniband = Some(LinkLayer::InfiniBand);
        let narrowed = [
            (None, false),
            (None, true),
            (infiniband, false),
            (infiniband, false),
        ];
        assert_eq!(layers("rd.ib=1 rd.ib.require=any"), narrowed);
        assert_eq!(layers("rd.ib=1 rd.ib.require=all"), narrowed);
        let ethernet = Some(LinkLayer::Ethernet);
        assert_eq!(layers("rd.ib.require=eth"), [(ethernet, false); 4]);
        assert_eq!(
            layers("rd.ib.link=rxe1:rxe:eth1 rd.ib.require=any"),
            [(None, false); 4]
        );
    }

    #[test]
    fn what_says_nothing_about_ethernet_means_infiniband() {
        const NO: Signs = Signs {
            named: None,
            is_ipoib_of_any: false,
            has_ethernet: false,
            has_ipoib: false,
            is_infiniband_machine: false,
        };
        let infiniband = Some(LinkLayer::InfiniBand);
        let ethernet = Some(LinkLayer::Ethernet);
        let machine = Signs {
            is_infiniband_machine: true,
            ..NO
        };
        let ipoib = Signs {
            has_ipoib: true,
            ..NO
        };
        let roce = Signs {
            has_ethernet: true,
            ..NO
        };
        for (what, signs, expected) in [
            ("rd.ib=1 on a machine of Ethernet", NO, None),
            ("rd.ib=1 beside an InfiniBand card", machine, infiniband),
            ("ib_ipoib or an IPoIB interface", ipoib, infiniband),
            ("rd.ib.link= or rd.ib.roce=", roce, None),
            (
                "rd.ib.roce= beside an InfiniBand card",
                Signs {
                    has_ethernet: true,
                    ..machine
                },
                None,
            ),
            (
                "rd.ib.link= and ib_ipoib",
                Signs {
                    has_ethernet: true,
                    ..ipoib
                },
                None,
            ),
            (
                "rd.ib.mode= of any port, and rd.ib.roce=",
                Signs {
                    is_ipoib_of_any: true,
                    ..roce
                },
                infiniband,
            ),
            (
                "rd.ib.require=ib and rd.ib.link=",
                Signs {
                    named: infiniband,
                    ..roce
                },
                infiniband,
            ),
            (
                "rd.ib.require=eth, IPoIB and an InfiniBand card",
                Signs {
                    named: ethernet,
                    has_ipoib: true,
                    ..machine
                },
                ethernet,
            ),
        ] {
            assert_eq!(link_layer(signs), expected, "{what}");
        }
    }
}
