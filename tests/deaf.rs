// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ARP probes of a program whose decoder does not work, in a network of its own. Needs root;
//! without root the test reports that it was skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod pace;
mod skip;

use std::net::Ipv4Addr;
use std::process::Command;

use ibboot::dhcp::hardware::Hardware;
use ibboot::facts::Netdev;
use ibboot::hardware::HardwareType;
use ibboot::system::decoder;
use ibboot::up::claims::Claims;
use kernel_cmdline::HwAddr;
use nix::sched::{CloneFlags, unshare};

fn ip(arguments: &str) -> String {
    let run = Command::new("ip").args(arguments.split(' ')).output();
    let run = run.unwrap();
    assert!(run.status.success(), "ip {arguments}: {run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// A network with another host that has 10.9.8.7.
fn network() -> Hardware {
    ip("link add near type veth peer name far");
    ip("addr add 10.9.8.7/24 dev far");
    ip("link set far up");
    ip("link set near up");
    let near: serde_json::Value = serde_json::from_str(&ip("-j link show near")).unwrap();
    let address = HwAddr::parse(near[0]["address"].as_str().unwrap()).unwrap();
    Hardware {
        index: near[0]["ifindex"].as_u64().unwrap().try_into().unwrap(),
        hardware_type: HardwareType::Ethernet,
        address: address.as_bytes().to_vec(),
        broadcast: vec![0xff; 6],
    }
}

#[test]
fn an_address_stays_unproven_while_no_answer_is_decoded() {
    if skip::without_root("deaf") {
        return;
    }
    decoder::use_program("/bin/false".into());
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let hardware = network();
    let address = Ipv4Addr::new(10, 9, 8, 7);
    let found = |claims: &Claims| {
        let mut netdev = Netdev {
            ifindex: Some(hardware.index),
            ..Netdev::default()
        };
        claims.add_to(std::slice::from_mut(&mut netdev));
        (netdev.unproven, netdev.taken)
    };
    let mut claims = Claims::new(true);
    assert!(claims.claim(&hardware, address).unwrap());
    assert!(!claims.is_settled());
    assert_eq!(found(&claims), (Vec::new(), Vec::new()));
    for _ in 0..2 {
        let mut limit = pace::Limit::seconds(20);
        while !claims.is_open(hardware.index, address) {
            assert!(!limit.is_over(), "no end of the probe");
            let due = claims.due().unwrap();
            std::thread::sleep(due.duration_since(tokio::time::Instant::now()));
            claims.listen();
        }
        // The next probe holds nobody who wants to end.
        assert!(claims.claim(&hardware, address).unwrap());
        assert!(claims.is_settled());
        assert_eq!(found(&claims), (vec![address], Vec::new()));
    }
}
