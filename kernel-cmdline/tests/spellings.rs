// SPDX-License-Identifier: MIT OR Apache-2.0
//! A port may be written as reports write it, wherever an argument of the table takes a selector or
//! an interface.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use kernel_cmdline::{PARAMETERS, Source, parse};

/// One port in every spelling.
const SPELLINGS: [&str; 12] = [
    "ib0",
    "mlx5_0/1",
    "0xb8599f0300fc1a2c",
    "guid=0xb8599f0300fc1a2c",
    "b859:9f03:00fc:1a2c",
    "guid=b859:9f03:00fc:1a2c",
    "b8:59:9f:03:00:fc:1a:2c",
    "b8-59-9f-03-00-fc-1a-2c",
    "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c",
    "0000:81:00.0",
    "81:00.0",
    "pci=0000:81:00.0",
];

/// Arguments with a selector or an interface in the place of `@`.
const PLACES: &[&str] = &[
    "bond=bond0:@",
    "bond=bond0:@,ib7",
    "bond=bond0:@:miimon=50",
    "bond=bond0:@,ib1:miimon=50,arp_ip_target=[fd00::1]:2044",
    "bond=bond0:ib1,@::2044",
    "bootdev=@",
    "ib.pkey=@.8001",
    "ip=@:dhcp",
    "ip=@:dhcp,auto6:2044",
    "ip=10.0.0.5::10.0.0.1:24:node5:@:none",
    "ip=10.0.0.5::10.0.0.1:24::@",
    "ip=10.0.0.5:::24::@:none:10.0.0.2",
    "rd.ib.dhcp.client-id=@:guid",
    "rd.ib.mode=@:connected",
    "rd.ib.mtu=@:max",
    "rd.ib.porttype=@:ib",
    "rd.ib.rate=@=100",
    "rd.ib.require=@",
    "rd.ib.require=@,mlx5_1:1,@",
    "rd.ib.require=all,-@",
    "rd.ib.roce=@:v2",
    "rd.net.dhcp.client-id=@:ff-00-01",
    "rd.route=10.8.0.0/16:10.0.0.9:@",
];

/// Nothing is made of the IPoIB interface of a port here: the kernel has no VLAN and no bridge of
/// such interfaces, and ibboot makes no team.
const REFUSED: &[&str] = &["bridge", "team", "vlan"];

#[test]
fn a_port_may_be_written_as_reports_write_it() {
    for place in PLACES {
        for spelling in SPELLINGS {
            let line = place.replace('@', spelling);
            let source = [Source::new("line", line.as_bytes())];
            let arguments = parse(&source);
            let wrong: Vec<String> = arguments
                .complaints
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(wrong, [""; 0], "{line}");
        }
    }
}

#[test]
fn the_places_are_those_of_the_table() {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let takes_port = |grammar: &str| {
        let mut words = grammar.split(|c| !is_word(c));
        words.any(|word| matches!(word, "SELECTOR" | "IF" | "PARENT" | "INTERFACE"))
    };
    let named: Vec<&str> = PARAMETERS
        .iter()
        .filter(|parameter| takes_port(parameter.grammar))
        .map(|parameter| parameter.name)
        .filter(|name| !REFUSED.contains(name))
        .collect();
    for name in &named {
        let is_it = |place: &&str| place.split('=').next() == Some(name);
        assert!(PLACES.iter().any(is_it), "no place for {name}");
    }
    assert!(named.len() > 12, "{named:?}");
}
