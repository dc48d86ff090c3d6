// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queries the subnet administrator when an interface on an ACTIVE port has no carrier; for
//! `check --sm`, about every other interface and port too.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, timeout};

use crate::facts::{Facts, PortRef};
use crate::hardware::{group_of_broadcast, unhex};
use crate::rdma::chardev::{self, Kind};
use crate::rdma::mad::Replies;
use crate::rdma::netlink::Rdma;
use crate::rdma::parse;
use crate::rdma::sa::{self, Answer, CALM, Heard, Interview, Next, Patience, QUICK};
use crate::rdma::umad::{Administrator, Received, Umad};
use crate::system::clock::boottime_ns;
use crate::system::decoder::{LOST, decode};
use crate::system::readiness::watched;
use crate::system::root::Root;
use crate::verify::checks::Id;
use crate::verify::finding::{Finding, Status};
use crate::verify::report::{LinkReport, Report};

/// The kernel reports the end of each query, unless the request cannot be sent or the port is removed
/// meanwhile.
const GUARD: Duration = Duration::from_secs(1);
/// Time limit of `check` for all queries.
const CHECK: Duration = Duration::from_secs(3);
/// Time limit of `check --sm` for a port without trouble: 3 s, and 1 s with a global route header.
const CONTACT: Duration = Duration::from_secs(5);
/// The default partition: every port is a member of it, full or limited.
const FULL_DEFAULT: u16 = 0xffff;
const LIMITED_DEFAULT: u16 = 0x7fff;

/// Asks once about every interface in this trouble, with `sm` about every other interface and port too,
/// all ports side by side, for `check`. An interface about which nothing is answered in 3 s is left out.
pub async fn once(
    root: &Root,
    rdma: Option<&Rdma>,
    facts: &Facts,
    report: &Report,
    sm: bool,
) -> (Vec<sa::SaAnswer>, Vec<sa::Contact>) {
    let mut ports: BTreeMap<String, Vec<Question>> = BTreeMap::new();
    for (interface, port) in report
        .links
        .iter()
        .filter_map(|link| in_trouble(link, facts))
    {
        let question = about_interface(root, rdma, interface, port, QUICK);
        ports.entry(port.name()).or_default().push(question);
    }
    let troubled: BTreeSet<String> = ports.keys().cloned().collect();
    let joined = report.links.iter().filter(|_| sm);
    for (interface, port) in joined.filter_map(|link| with_carrier(Status::Ok, link, facts)) {
        let question = about_interface(root, rdma, interface, port, QUICK);
        ports.entry(port.name()).or_default().push(question);
    }
    let others: BTreeMap<String, Question> = report
        .links
        .iter()
        .filter_map(|link| on_subnet(link, facts))
        .filter(|port| sm && !troubled.contains(&port.name()))
        .map(|port| (port.name(), about_port(root, rdma, port)))
        .collect();
    let contacts = others.into_iter().map(|(port, question)| async move {
        let sm_lid = question.sm_lid;
        let reply = timeout(CONTACT, interview(question)).await;
        sa::Contact {
            port,
            sm_lid,
            answer: reply.map_or(Answer::Silent, |reply| reply.answer),
        }
    });
    let deadline = Instant::now() + CHECK;
    let interviews = ports.into_values().map(|questions| async move {
        let mut replies = Vec::new();
        for question in questions {
            let left = deadline.saturating_duration_since(Instant::now());
            replies.extend(timeout(left, interview(question)).await);
        }
        replies
    });
    let (replies, contacts) = join(join_all(interviews), join_all(contacts)).await;
    (replies.into_iter().flatten().collect(), contacts)
}

/// Whether a query is necessary.
pub fn is_needed(facts: &Facts, report: &Report, sm: bool) -> bool {
    let mut links = report.links.iter();
    let is_asked = |link: &LinkReport| match sm {
        true => on_subnet(link, facts).is_some(),
        false => in_trouble(link, facts).is_some(),
    };
    links.any(is_asked)
}

/// The port of a link that a subnet manager brought up.
fn on_subnet<'a>(link: &LinkReport, facts: &'a Facts) -> Option<PortRef<'a>> {
    let has = |id: Id| {
        let is_it = |finding: &Finding| finding.check == id && finding.status == Status::Ok;
        link.checks.iter().any(is_it)
    };
    let name = link.name.as_deref()?;
    let is_up = has(Id::PortLid) && has(Id::PortSmLid);
    facts.port(name).filter(|_| is_up)
}

/// The interface and port of a link that lacks carrier on an ACTIVE port.
pub fn in_trouble<'a>(link: &'a LinkReport, facts: &'a Facts) -> Option<(&'a str, PortRef<'a>)> {
    with_carrier(Status::Critical, link, facts)
}

/// The interface and port of a link whose check of carrier has this status.
fn with_carrier<'a>(
    status: Status,
    link: &'a LinkReport,
    facts: &'a Facts,
) -> Option<(&'a str, PortRef<'a>)> {
    let mut checks = link.checks.iter();
    let is_it = |finding: &Finding| finding.check == Id::IpoibCarrier && finding.status == status;
    let name = link.name.as_deref().filter(|_| checks.any(is_it))?;
    Some((link.interface.as_deref()?, facts.port(name)?))
}

/// An interview ready to begin, or why it cannot.
#[derive(Debug)]
pub struct Question {
    /// The interface, or the port.
    about: String,
    sm_lid: u32,
    ready: Result<Ready, String>,
}

#[derive(Debug)]
struct Ready {
    umad: AsyncFd<Umad>,
    administrator: Administrator,
    interview: Interview,
}

/// What keeps the interface from its broadcast group.
pub fn about_interface(
    root: &Root,
    rdma: Option<&Rdma>,
    interface: &str,
    port: PortRef<'_>,
    patience: Patience,
) -> Question {
    let group = broadcast_group(root, interface);
    Question {
        about: interface.to_owned(),
        sm_lid: port.port.sm_lid.unwrap_or(0),
        ready: group.and_then(|group| ready(root, rdma, Some(group), port, patience)),
    }
}

/// The query whether the subnet administrator of a port answers.
pub fn about_port(root: &Root, rdma: Option<&Rdma>, port: PortRef<'_>) -> Question {
    Question {
        about: port.name(),
        sm_lid: port.port.sm_lid.unwrap_or(0),
        ready: ready(root, rdma, None, port, CALM),
    }
}

fn ready(
    root: &Root,
    rdma: Option<&Rdma>,
    group: Option<Ipv6Addr>,
    port: PortRef<'_>,
    patience: Patience,
) -> Result<Ready, String> {
    let lids = port.port.sm_lid.zip(port.port.lid);
    let (sm_lid, own_lid) = lids.ok_or("the port has no LID")?;
    // The header of ib_umad has 16 bits, an Omni-Path LID up to 24.
    let short =
        |lid: u32| u16::try_from(lid).map_err(|_| format!("LID {lid} has more than 16 bits"));
    let (sm_lid, own_lid) = (short(sm_lid)?, short(own_lid)?);
    let (rdma, index) = rdma
        .zip(port.device.ifindex)
        .ok_or("NETLINK_RDMA does not know the device")?;
    let device = (index, port.device.ifname.as_str());
    let file = chardev::name(root, rdma, device, Kind::Umad(port.port.port))
        .map_err(|e| format!("no umad device: {e}; load ib_umad"))?;
    let open =
        |e: std::io::Error| format!("/dev/infiniband/{file}: {}", crate::error::errno_text(&e));
    let directory = format!(
        "/sys/class/infiniband/{}/ports/{}",
        port.device.ifname, port.port.port
    );
    let administrator = Administrator {
        lid: sm_lid,
        sl: service_level(root, &directory)?,
        pkey_index: default_pkey_index(root, &directory)
            .ok_or("the port is not in the default partition (0xffff or 0x7fff)")?,
        subnet_prefix: port.port.subnet_prefix.map_or(0, |prefix| prefix.0),
    };
    let tid = boottime_ns() as u32;
    Ok(Ready {
        umad: Umad::open(&file).and_then(watched).map_err(open)?,
        administrator,
        interview: Interview::new(group, own_lid, tid, patience),
    })
}

/// The service level of queries: with a wrong one no answer may come.
fn service_level(root: &Root, port: &str) -> Result<u8, String> {
    let path = format!("{port}/sm_sl");
    let text = root
        .text(&path)
        .map_err(|e| format!("{path}: {}", crate::error::errno_text(&e)))?;
    let sl = parse::number("service level", &text).ok();
    let sl = sl.and_then(|sl| u8::try_from(sl).ok());
    sl.ok_or_else(|| format!("{path}: {text:?} is no service level"))
}

fn broadcast_group(root: &Root, interface: &str) -> Result<Ipv6Addr, String> {
    let path = format!("/sys/class/net/{interface}/broadcast");
    let text = root.text(&path).map_err(|e| format!("{path}: {e}"))?;
    let group = unhex(&text).and_then(|bytes| group_of_broadcast(&bytes));
    group.ok_or_else(|| format!("{path}: {text:?} is no IPoIB address"))
}

/// Where in the port's table the default partition stands, the full membership preferred. Each slot
/// is a query of the firmware, which may hang for a minute: the search ends at the first full
/// membership and at the first slot that cannot be read.
fn default_pkey_index(root: &Root, port: &str) -> Option<u16> {
    let names = root.list(&format!("{port}/pkeys")).ok()?;
    let mut slots: Vec<u16> = names.iter().filter_map(|name| name.parse().ok()).collect();
    slots.sort_unstable();
    let pkey = |slot: u16| {
        let text = root.text(&format!("{port}/pkeys/{slot}")).ok()?;
        parse::pkey(&text).ok()
    };
    let mut table = slots.iter().map_while(|slot| Some((*slot, pkey(*slot)?)));
    let mut limited = None;
    let full = table.find(|(slot, pkey)| {
        limited = limited.or((*pkey == LIMITED_DEFAULT).then_some(*slot));
        *pkey == FULL_DEFAULT
    });
    full.map(|(slot, _)| slot).or(limited)
}

/// From the first question to the result.
pub async fn interview(question: Question) -> sa::SaAnswer {
    let answer = match question.ready {
        Ok(ready) => questions(ready).await.unwrap_or_else(Answer::NotAsked),
        Err(why) => Answer::NotAsked(why),
    };
    sa::SaAnswer {
        interface: question.about,
        sm_lid: question.sm_lid,
        answer,
    }
}

async fn questions(ready: Ready) -> Result<Answer, String> {
    let Ready {
        umad,
        administrator,
        mut interview,
    } = ready;
    loop {
        let patience = interview.patience();
        let (grh, question) = (interview.grh(), interview.question());
        umad.get_ref()
            .send(&administrator, grh, &question, patience)
            .map_err(|e| format!("umad: {}", crate::error::errno_text(&e)))?;
        let tries = patience.retries.saturating_add(1);
        let guard = Duration::from_millis(patience.timeout_ms.saturating_mul(tries).into()) + GUARD;
        // The kernel did not report the timeout.
        let heard = timeout(guard, reply(&umad, &mut interview)).await;
        let next = match heard {
            Ok(next) => next?,
            Err(_) => interview.hear(Heard::Silence(None)),
        };
        if let Next::Done(answer) = next {
            return Ok(answer);
        }
    }
}

/// Waits for what answers the question at hand.
async fn reply(umad: &AsyncFd<Umad>, interview: &mut Interview) -> Result<Next, String> {
    let failed = |e: std::io::Error| format!("umad: {}", crate::error::errno_text(&e));
    loop {
        let mut ready = umad.readable().await.map_err(failed)?;
        let next = match umad.get_ref().receive().map_err(failed)? {
            Some(Received::Reply(mad)) => {
                let reply = decode::<Replies>(&interview.awaited(), &mad);
                interview.hear(Heard::Reply(reply.ok_or(LOST)?))
            }
            Some(Received::Silence(tid)) => interview.hear(Heard::Silence(tid)),
            None => {
                ready.clear_ready();
                continue;
            }
        };
        if next != Next::Wait {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Port};

    #[test]
    fn no_query_is_sent_with_a_service_level_that_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let level = || service_level(&root, "/port");
        let missing = "/port/sm_sl: No such file or directory";
        assert_eq!(level(), Err(missing.to_owned()));
        std::fs::create_dir(dir.path().join("port")).unwrap();
        for (text, expected) in [
            ("3\n", Ok(3)),
            (
                "x\n",
                Err("/port/sm_sl: \"x\" is no service level".to_owned()),
            ),
            (
                "256\n",
                Err("/port/sm_sl: \"256\" is no service level".to_owned()),
            ),
        ] {
            std::fs::write(dir.path().join("port/sm_sl"), text).unwrap();
            assert_eq!(level(), expected);
        }
    }

    #[test]
    fn a_lid_of_omni_path_may_be_too_long_for_a_query() {
        let why = |sm_lid, lid| {
            let device = Device {
                ports: vec![Port {
                    sm_lid,
                    lid,
                    ..Port::default()
                }],
                ..Device::default()
            };
            let port = PortRef {
                device: &device,
                port: &device.ports[0],
            };
            about_port(&Root::new("/"), None, port).ready.unwrap_err()
        };
        assert_eq!(why(Some(1), None), "the port has no LID");
        assert_eq!(
            why(Some(0x1_0000), Some(5)),
            "LID 65536 has more than 16 bits"
        );
        assert_eq!(
            why(Some(1), Some(0x1_0001)),
            "LID 65537 has more than 16 bits"
        );
        let unknown = "NETLINK_RDMA does not know the device";
        assert_eq!(why(Some(1), Some(0xbfff)), unknown);
    }

    #[test]
    fn the_default_partition_is_found_where_it_stands() {
        let tree = tempfile::tempdir().unwrap();
        let table = tree.path().join("port/pkeys");
        std::fs::create_dir_all(&table).unwrap();
        let root = Root::new(tree.path());
        let set = |slot: u16, pkey: &str| {
            std::fs::write(table.join(slot.to_string()), format!("{pkey}\n")).unwrap();
        };
        assert_eq!(default_pkey_index(&root, "port"), None);
        set(0, "0x8001");
        set(1, "0x0000");
        assert_eq!(default_pkey_index(&root, "port"), None);
        set(10, "0x7fff");
        assert_eq!(default_pkey_index(&root, "port"), Some(10));
        set(12, "0xffff");
        assert_eq!(default_pkey_index(&root, "port"), Some(12));
        // A slot that cannot be read: the firmware may hang, and no further slot is read.
        set(11, "garbled");
        assert_eq!(default_pkey_index(&root, "port"), Some(10));
        // Nothing is read behind a full membership.
        set(2, "0xffff");
        assert_eq!(default_pkey_index(&root, "port"), Some(2));
    }
}
