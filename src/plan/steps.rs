// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the plan in order, as `ibboot plan` shows it: the steps of the plan, and the work that
//! `up` does for the expectation.

use kernel_cmdline::Handover;
use serde::{Serialize, Serializer};

use super::{Action, Plan, Step};
use crate::system::drivers;
use crate::wish::bond::BondWish;
use crate::wish::expectation::{Expectation, LinkWish, Require};
use crate::wish::ipoib::IpoibWish;
use crate::wish::origin::Origin;
use crate::wish::selector::Selector;

/// A line of the plan, and the argument that requests it; none if the line follows from another
/// line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shown<'a> {
    /// What is done.
    #[serde(flatten)]
    pub what: What<'a>,
    /// The argument.
    pub requested_by: Option<&'a Origin>,
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum What<'a> {
    /// A step of the plan.
    Step(&'a Action),
    /// Work for the expectation: `up` continues until the expectation is met.
    Expected(Expected<'a>),
}

/// What `up` does to meet the expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Expected<'a> {
    /// Bring an IPoIB interface up: child, mode, up, carrier, MTU, addresses, in this order.
    BringUpInterface {
        /// Its name on the command line.
        name: &'a str,
        /// Selector of its port.
        port: &'a str,
        /// What is requested of the interface.
        ipoib: &'a IpoibWish,
    },
    /// Bring up the IPoIB interfaces of several ports, except those that another line names.
    BringUpInterfaces {
        /// Selectors of the ports; empty for every port.
        ports: Vec<&'a str>,
        /// What is requested of each interface.
        ipoib: &'a IpoibWish,
    },
    /// Create a bond of IPoIB interfaces; set addresses when the bond has carrier.
    MakeBond {
        name: &'a str,
        /// Its interfaces and options.
        bond: &'a BondWish,
        /// MTU and addresses.
        ipoib: &'a IpoibWish,
    },
    /// Wait until the port is verified.
    WaitFor {
        /// The selector, `any port`, `every port`, or the bond.
        port: &'a str,
        /// The boot waits for it.
        gates_boot: bool,
    },
    /// Query a server over RDMA when the links are verified.
    AskServer {
        /// Its address, with the port if a service is requested.
        server: String,
        /// An answer of one of several servers is enough.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        alternative: bool,
    },
    /// Write the handover and let the boot continue.
    HandOver {
        /// Who owns the interfaces afterwards, if an argument says so.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "owner")]
        to: Option<Handover>,
    },
}

impl Plan {
    /// All lines, in the order in which `up` works.
    pub fn lines(&self) -> Vec<Shown<'_>> {
        let is_for_bonds = |step: &&Step| {
            let is_bonding = |module: &str| module == drivers::BONDING;
            matches!(&step.action, Action::LoadModule { module, .. } if is_bonding(module))
        };
        let (last, first): (Vec<&Step>, Vec<&Step>) = self.steps.iter().partition(is_for_bonds);
        let mut lines: Vec<Shown<'_>> = first.into_iter().map(Shown::from).collect();
        lines.extend(self.interface_lines());
        lines.extend(last.into_iter().map(Shown::from));
        lines.extend(self.bond_lines());
        lines.extend(self.lines_of_all());
        lines.extend(self.waiting_lines());
        let servers = self.expectation.servers.iter();
        lines.extend(servers.map(|wish| {
            let server = wish.server.to_string();
            let alternative = wish.alternative;
            let step = Expected::AskServer {
                server,
                alternative,
            };
            line(step, wish.requested_by.as_ref())
        }));
        let handover = self.handover.as_ref();
        let to = handover.map(|to| to.value);
        let requested_by = handover.map(|to| &to.origin);
        lines.push(line(Expected::HandOver { to }, requested_by));
        lines
    }

    fn possible(&self) -> impl Iterator<Item = &LinkWish> {
        let links = self.expectation.links.iter();
        links.filter(|link| link.refused.is_none())
    }

    fn interface_lines(&self) -> impl Iterator<Item = Shown<'_>> {
        self.interfaces.iter().filter_map(|interface| {
            let name = &interface.value.name;
            let mut links = self.possible();
            let link = links.find(|link| link.target == interface.value.link)?;
            let action = Expected::BringUpInterface {
                name,
                port: link
                    .selector()
                    .map_or(link.target.as_str(), Selector::as_str),
                ipoib: link.ipoib.as_ref()?,
            };
            Some(line(action, Some(&interface.origin)))
        })
    }

    fn bond_lines(&self) -> impl Iterator<Item = Shown<'_>> {
        self.possible().filter_map(|link| {
            let action = Expected::MakeBond {
                name: link.target.as_str(),
                bond: link.bond.as_ref()?,
                ipoib: link.ipoib.as_ref()?,
            };
            Some(line(action, link.requested_by.as_ref()))
        })
    }

    /// The interfaces that no argument names: those of the listed ports, and those of every port.
    fn lines_of_all(&self) -> impl Iterator<Item = Shown<'_>> {
        let of_all = |link: &&LinkWish| link.of_all;
        let listed: Vec<&LinkWish> = self.expectation.links.iter().filter(of_all).collect();
        let ports = listed.iter().map(|link| link.target.as_str()).collect();
        let listed = listed.first().map(|link| (ports, *link));
        let any_port = self.expectation.any_port.as_ref().filter(of_all);
        let any_port = any_port.map(|link| (Vec::new(), link));
        listed
            .into_iter()
            .chain(any_port)
            .filter_map(|(ports, link)| {
                let ipoib = link.ipoib.as_ref()?;
                let action = Expected::BringUpInterfaces { ports, ipoib };
                Some(line(action, self.of_all.as_ref()))
            })
    }

    fn waiting_lines(&self) -> impl Iterator<Item = Shown<'_>> {
        let Expectation {
            require,
            links,
            any_port,
            ..
        } = &self.expectation;
        let is_every = *require == Require::All && links.is_empty();
        let anonymous = any_port.iter().filter(|_| links.is_empty());
        let links = links.iter().chain(anonymous);
        let possible = links.filter(|link| link.refused.is_none());
        possible.map(move |link| {
            let action = Expected::WaitFor {
                port: match is_every {
                    true => "every port",
                    false => link.target.as_str(),
                },
                gates_boot: link.required || *require != Require::Listed,
            };
            line(action, link.requested_by.as_ref())
        })
    }
}

fn owner<S: Serializer>(to: &Option<Handover>, serializer: S) -> Result<S::Ok, S::Error> {
    to.map(Handover::as_str).serialize(serializer)
}

impl<'a> From<&'a Step> for Shown<'a> {
    fn from(step: &'a Step) -> Shown<'a> {
        Shown {
            what: What::Step(&step.action),
            requested_by: step.requested_by.as_ref(),
        }
    }
}

fn line<'a>(action: Expected<'a>, requested_by: Option<&'a Origin>) -> Shown<'a> {
    Shown {
        what: What::Expected(action),
        requested_by,
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Inventory, plan};
    use crate::request::Request;
    use crate::system::root::Root;

    /// `ACTION <- ARGUMENT` of each line.
    fn lines(cmdline: &str) -> Vec<String> {
        let sys = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/fresh-node");
        let inventory = Inventory::read(&Root::new(sys)).unwrap();
        let plan = plan(&Request::from_text(cmdline), &inventory);
        let lines = plan.lines().into_iter().map(|line| {
            let json = serde_json::to_value(&line).unwrap();
            let object = ["module", "name", "port", "server"].map(|key| json[key].as_str());
            let object = object.into_iter().flatten().next().unwrap_or_default();
            let argument = line.requested_by.map_or("", |origin| &origin.argument);
            let action = json["action"].as_str().unwrap();
            format!("{action} {object} <- {argument}")
        });
        lines.collect()
    }

    #[test]
    fn lines_stand_in_the_order_of_the_walk_each_with_its_argument() {
        let ip = "ip=10.0.0.1:::24::ib0:none";
        let (link, rest) = (
            "rd.ib.link=rxe0:rxe:eth0",
            "rd.ib.probe=10.0.0.2 rd.ib.handover=nm",
        );
        assert_eq!(
            lines(&format!("{ip} {link} rd.ib.roce=v2 {rest}")),
            [
                &format!("load_module mlx5_ib <- {ip}"),
                &format!("load_module ib_ipoib <- {ip}"),
                "load_module rdma_cm <- rd.ib.roce=v2",
                "load_module rdma_ucm <- rd.ib.probe=10.0.0.2",
                &format!("load_module rdma_rxe <- {link}"),
                &format!("add_link rxe0 <- {link}"),
                "set_roce_mode  <- rd.ib.roce=v2",
                &format!("bring_up_interface ib0 <- {ip}"),
                &format!("wait_for rxe0 <- {link}"),
                &format!("wait_for ib0 <- {ip}"),
                "ask_server 10.0.0.2 <- rd.ib.probe=10.0.0.2",
                "hand_over  <- rd.ib.handover=nm",
            ]
        );
    }

    #[test]
    fn an_interface_that_is_listed_by_its_port_keeps_its_name_and_its_argument() {
        let guid = "guid=0xb8599f0300fc1a2c";
        let found = lines(&format!(
            "bootdev=ib7 BOOTIF=20-b8-59-9f-03-00-fc-1a-2c rd.ib.require={guid}"
        ));
        assert!(
            found.contains(&"bring_up_interface ib7 <- bootdev=ib7".to_owned()),
            "{found:?}"
        );
        let waits = format!("wait_for {guid} <- rd.ib.require={guid}");
        assert!(found.contains(&waits), "{found:?}");
    }
}
