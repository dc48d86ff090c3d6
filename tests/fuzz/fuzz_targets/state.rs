// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as the files that ibboot reads back: state.json, expected.json and check.json of
//! /run/ibboot, and the answers in a saved tree. No panic; a rejected file gives one short line; an
//! accepted file survives writing and reading, and `check`, `timeline`, `lease` and the handover
//! make only clean lines and file names of its content.
//!
//! A NUL ends a file and starts the next file; the first byte selects the kind of file.
#![no_main]

use std::fmt::Debug;
use std::path::Path;
use std::sync::LazyLock;

use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v4::client::{Action, Client, Config};
use ibboot::dhcp::v4::identity::Identity;
use ibboot::dhcp::v4::packet::Message;
use ibboot::dhcp::v4::progress::Progress;
use ibboot::error::Kind;
use ibboot::facts::{Facts, Leases, Renewer};
use ibboot::handover::timeline::Machine;
use ibboot::handover::{Kept, State, peers, timeline};
use ibboot::hardware::{HardwareType, unhex};
use ibboot::plan::Inventory;
use ibboot::request::Request;
use ibboot::system::clock::SECOND;
use ibboot::system::root::Root;
use ibboot::system::terminal::Terminal;
use ibboot::verify::monitoring;
use ibboot::verify::report::Report;
use ibboot::wish::expectation::{Depth, Expectation};
use ibboot::{dhcp, handover, plan, verify};
use kernel_cmdline::Handover;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

const CMDLINE: &str = "ip=ib0:dhcp ip=ib1:dhcp6 rd.ib.require=all rd.ib.probe=10.0.0.2";
const HANDOVERS: [Handover; 5] = [
    Handover::Auto,
    Handover::Keep,
    Handover::Nm,
    Handover::Networkd,
    Handover::None,
];

/// A machine with two InfiniBand ports, the second port's interface without carrier, and the
/// expectation of a command line.
static MACHINE: LazyLock<(Facts, Expectation)> = LazyLock::new(|| {
    let root = Root::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../sys/connectx6-hdr"));
    let mut facts = Facts::gather(&root, None, &[], Depth::All);
    assert_eq!(facts.ports().count(), 2);
    facts.taken_ns = 3600 * SECOND;
    for netdev in facts
        .netdevs
        .iter_mut()
        .filter(|netdev| netdev.ifname == "ib1")
    {
        netdev.carrier = Some(false);
    }
    let inventory = Inventory::read_by(&root, None).expect("a tree");
    let plan = plan::plan(&Request::from_text(CMDLINE), &inventory);
    (facts, plan.expectation)
});

fuzz_target!(|data: &[u8]| {
    let (facts, expectation) = &*MACHINE;
    let boot_id = facts.boot_id.as_deref();
    let (mut state, mut check, mut expected) = (None, None, None);
    let mut kept = None;
    let (mut administrators, mut managers) = (None, None);
    let (mut servers, mut connections) = (None, None);
    for bytes in data.split(|byte| *byte == 0).take(4) {
        let Some((kind, json)) = bytes.split_first() else {
            continue;
        };
        match kind {
            b's' => state = file::<State>(json, boot_id).or(state),
            b'k' => kept = file::<Kept>(json, boot_id).or(kept),
            b'e' => expected = file::<Expectation>(json, boot_id).or(expected),
            b'c' => check = file::<Report>(json, boot_id).or(check),
            b'a' => administrators = saved(json).or(administrators),
            b'm' => managers = saved(json).or(managers),
            b'r' => servers = saved(json).or(servers),
            b'n' => connections = saved(json).or(connections),
            _ => {}
        }
    }
    let is_answered = administrators.is_some() || managers.is_some();
    let is_answered = is_answered || servers.is_some() || connections.is_some();
    if state.is_none() && kept.is_none() && expected.is_none() && !is_answered {
        return;
    }
    let mut facts = facts.clone();
    facts.subnet_administrator = administrators.unwrap_or_default();
    facts.subnet_managers = managers.unwrap_or_default();
    facts.servers = servers.unwrap_or_default();
    facts.connections = connections.unwrap_or_default();
    if let Some(state) = state {
        let timeline = timeline::timeline(&state, check.as_ref(), Machine::default());
        let terminal = Terminal {
            columns: 80,
            has_colours: false,
        };
        lines(&timeline.text(&terminal));
        lines(&timeline.svg());
        kept.get_or_insert_with(|| Kept::new(None)).join(&state);
    }
    if let Some(kept) = kept {
        for progress in kept.dhcp.iter().take(4) {
            resume(progress);
        }
        for progress in kept.dhcp6.iter().take(4) {
            resume6(progress);
        }
        facts.add_leases(Ok(Leases {
            dhcp: kept.dhcp,
            dhcp6: kept.dhcp6,
            renewer: [
                None,
                Some(Renewer::Keeper),
                Some(Renewer::Nobody),
                Some(Renewer::Owner("NetworkManager")),
            ][data.len() % 4],
        }));
    }
    let to = HANDOVERS[data.len() % HANDOVERS.len()];
    compare(expected.as_ref().unwrap_or(expectation), &facts, to);
});

/// Reads the bytes as a file of this boot.
fn file<T: DeserializeOwned + Serialize + Debug + PartialEq>(
    bytes: &[u8],
    boot_id: Option<&str>,
) -> Option<T> {
    match handover::parse::<T>("state.json", bytes, boot_id) {
        Ok(value) => {
            let json = handover::json(&value).expect("JSON");
            assert_eq!(
                handover::parse("state.json", json.as_bytes(), boot_id).as_ref(),
                Ok(&value)
            );
            Some(value)
        }
        Err(error) => {
            assert_eq!(error.kind, Kind::Unknown);
            let line = error.to_string();
            assert!(
                line.len() < 2000 && !line.chars().any(char::is_control),
                "{line:?}"
            );
            None
        }
    }
}

/// Reads the bytes as answers in a saved tree.
fn saved<T: DeserializeOwned + Serialize + Debug + PartialEq>(bytes: &[u8]) -> Option<Vec<T>> {
    let read = serde_json::from_slice::<Vec<T>>(bytes).ok()?;
    let json = serde_json::to_vec(&read).expect("JSON");
    assert_eq!(
        serde_json::from_slice::<Vec<T>>(&json).ok().as_ref(),
        Some(&read)
    );
    Some(read)
}

/// What `ibboot check` prints in each format, and the files of the handover.
fn compare(expectation: &Expectation, facts: &Facts, to: Handover) {
    expectation.depth();
    let report = verify::verify(expectation, facts);
    lines(&report.text());
    lines(&monitoring::prometheus(&report));
    let nagios = monitoring::nagios(&report);
    lines(&nagios);
    assert!(
        nagios.starts_with("IBBOOT ") && nagios.matches('|').count() == 1,
        "{nagios}"
    );
    let nhc = monitoring::nhc(&report);
    lines(&nhc);
    assert_eq!(nhc.lines().count(), 1, "{nhc}");
    let json = handover::json(&report).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Report>(&json).ok(),
        Some(report.clone())
    );
    for file in peers::hand_over(to, expectation, &report, facts) {
        assert!(
            !file.name.contains('/') && !file.name.starts_with('.'),
            "{}",
            file.name
        );
        lines(&file.text);
    }
}

fn lines(text: &str) {
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
    // XML cannot represent these characters.
    assert!(
        !text.contains(['\u{fffe}', '\u{ffff}']) || !text.starts_with("<svg"),
        "{text:?}"
    );
}

/// `ibboot lease` continues with the state of an interface in state.json.
fn resume(progress: &Progress) {
    let (seen, hint) = progress.diagnosis();
    assert!(!seen.is_empty() || hint.is_empty());
    let (Some(lease), Some(client_id)) = (&progress.lease, unhex(&progress.client_id)) else {
        return;
    };
    let hardware: Vec<u8> = (0..20).collect();
    let identity = Identity::new(
        HardwareType::InfiniBand,
        &hardware,
        &RequestedId::Bytes(client_id),
    );
    let wish = &progress.wish;
    let config = Config {
        identity: identity.expect("InfiniBand"),
        vendor_class: wish.vendor_class.clone(),
        host_name: wish.host_name.clone(),
        keep: wish.keep,
        boot_waits: false,
    };
    let mut client = Client::new(config, 1);
    let mut now = 3600 * SECOND;
    let mut actions = client.resume(now, lease.clone(), progress.is_probing() && !wish.keep);
    let mut sent = 0;
    for _ in 0..8 {
        for action in actions.drain(..) {
            match action {
                Action::Send(message, _) => {
                    sent += 1;
                    assert_eq!(Message::decode(&message.encode()), Ok(message));
                }
                Action::Warn(line) => assert!(!line.chars().any(char::is_control), "{line:?}"),
                _ => {}
            }
        }
        now = client.due().unwrap_or(now).max(now);
        actions = client.wake(now);
    }
    // The times of a damaged lease cause no storm.
    let seconds = (now - 3600 * SECOND) / SECOND + 1;
    assert!(sent <= 2 * seconds + 8, "{sent} in {seconds} s");
}

/// Like `resume`, for DHCPv6.
fn resume6(progress: &dhcp::v6::progress::Progress) {
    let (seen, hint) = progress.diagnosis();
    assert!(!seen.is_empty() || hint.is_empty());
    let (Some(lease), Some(duid)) = (&progress.lease, unhex(&progress.duid)) else {
        return;
    };
    let identity = dhcp::v6::identity::Identity {
        duid,
        iaid: progress.iaid,
    };
    let config = dhcp::v6::client::Config {
        identity,
        keep: progress.wish.keep,
        boot_waits: false,
    };
    let mut client = dhcp::v6::client::Client::new(config, 1);
    let mut now = 3600 * SECOND;
    let mut actions = client.resume(now, lease.clone());
    let mut sent = 0;
    for _ in 0..8 {
        for action in actions.drain(..) {
            match action {
                dhcp::v6::client::Action::Send(message) => {
                    sent += 1;
                    let again = dhcp::v6::packet::Message::decode(&message.encode());
                    assert_eq!(again, Ok(message));
                }
                dhcp::v6::client::Action::Info(line) | dhcp::v6::client::Action::Warn(line) => {
                    assert!(!line.chars().any(char::is_control), "{line:?}");
                }
                _ => {}
            }
        }
        now = client.due().unwrap_or(now).max(now);
        actions = client.wake(now);
    }
    let seconds = (now - 3600 * SECOND) / SECOND + 1;
    assert!(sent <= 2 * seconds + 8, "{sent} in {seconds} s");
}
