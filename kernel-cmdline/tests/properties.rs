// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every command line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]

#[path = "common/invariants.rs"]
mod invariants;

use kernel_cmdline::{
    Cmdline, Guid, HwAddr, Ip, PARAMETERS, PciAddress, Pkey, Problem, Source, nearest, parse,
};
use proptest::prelude::*;

/// Bytes as they come, words of ours, and what separates and quotes them.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&'static str> = PARAMETERS.iter().map(|parameter| parameter.name).collect();
    let examples: Vec<&'static str> = PARAMETERS
        .iter()
        .map(|parameter| parameter.example)
        .collect();
    let piece = prop_oneof![
        2 => proptest::collection::vec(any::<u8>(), 0..12),
        4 => proptest::sample::select(names).prop_map(|name| format!("{name}=").into_bytes()),
        4 => proptest::sample::select(examples).prop_map(|example| example.as_bytes().to_vec()),
        3 => "[a-z0-9:.,=/\\[\\]-]{0,20}".prop_map(String::into_bytes),
        2 => proptest::sample::select(vec![" ", "\n", "\t", "\"", "=", ":", "\0", "\x1b", "rd.ib.", ","])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// A value without quotes and white space.
fn word() -> impl Strategy<Value = String> {
    "[!#-~]{1,12}"
}

fn ip_argument() -> impl Strategy<Value = String> {
    let v4 = any::<u32>().prop_map(|bits| std::net::Ipv4Addr::from_bits(bits).to_string());
    let v6 = any::<u128>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from_bits(bits)));
    let mac = proptest::sample::select(vec![6_usize, 8, 20]).prop_flat_map(|length| {
        (
            proptest::collection::vec(any::<u8>(), length),
            any::<bool>(),
        )
            .prop_map(|(bytes, dashes)| {
                let groups: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                groups.join(if dashes { "-" } else { ":" })
            })
    });
    let interface = prop_oneof![
        Just(String::new()),
        Just("ib0".to_string()),
        Just("ibp1s0.8004".to_string()),
        mac.clone()
    ];
    let method = proptest::sample::select(vec![
        "dhcp",
        "dhcp6",
        "dhcp,dhcp6",
        "auto6",
        "link6",
        "ibft",
        "either6",
    ]);
    let tail = prop_oneof![
        Just(String::new()),
        (68_u32..=65535).prop_map(|mtu| format!(":{mtu}")),
        (68_u32..=65535, mac.clone()).prop_map(|(mtu, mac)| format!(":{mtu}:{mac}")),
        mac.prop_map(|mac| format!("::{mac}")),
        v4.clone().prop_map(|dns| format!(":{dns}")),
        (v6.clone(), v4.clone()).prop_map(|(one, two)| format!(":{one}:{two}")),
    ];
    let own4 = (v4.clone(), v4, 0_u8..=32)
        .prop_map(|(own, gateway, prefix)| (own, gateway, prefix.to_string()));
    let own6 = (v6.clone(), v6, 0_u8..=128)
        .prop_map(|(own, gateway, prefix)| (own, gateway, prefix.to_string()));
    let none = Just((String::new(), String::new(), String::new()));
    (
        prop_oneof![own4, own6, none],
        "[a-z0-9.-]{0,12}",
        interface,
        method,
        tail,
        any::<bool>(),
    )
        .prop_map(
            |((own, gateway, prefix), host, interface, method, tail, short)| {
                if short && own.is_empty() {
                    format!("{interface}:{method}{tail}")
                } else {
                    format!("{own}::{gateway}:{prefix}:{host}:{interface}:{method}{tail}")
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_is_lost(first in hostile(), second in hostile()) {
        invariants::check(&[Source::new("/etc/cmdline", &first), Source::new("/proc/cmdline", &second)]);
    }

    #[test]
    fn plain_words_are_split_at_spaces(words in proptest::collection::vec(word(), 0..20), spaces in "[ \t\n]{1,3}") {
        let line = words.join(&spaces);
        let source = Source::new("line", line.as_bytes());
        let read: Vec<String> = source.tokens().map(|token| String::from_utf8(token.raw.to_vec()).unwrap()).collect();
        prop_assert_eq!(read, words);
    }

    /// Quotes around the value, and quotes around the whole, give the same name and value.
    #[test]
    fn both_ways_to_quote_mean_the_same(key in "[a-z][a-z.]{0,8}", value in "[ -!#-~]{0,20}") {
        for line in [format!("{key}=\"{value}\""), format!("\"{key}={value}\"")] {
            let source = Source::new("line", line.as_bytes());
            let tokens: Vec<_> = source.tokens().collect();
            prop_assert_eq!(tokens.len(), 1);
            prop_assert_eq!(tokens[0].key, key.as_bytes());
            prop_assert_eq!(tokens[0].value, Some(value.as_bytes()));
        }
    }

    #[test]
    fn the_last_one_counts(values in proptest::collection::vec(0_u32..1000, 1..8)) {
        let line: String = values.iter().map(|value| format!("rd.retry={value} ")).collect();
        let sources = [Source::new("line", line.as_bytes())];
        prop_assert_eq!(parse(&sources).retry.map(|retry| retry.value), values.last().copied());
        prop_assert_eq!(Cmdline::new(&sources).all("rd.retry").count(), values.len());
    }

    #[test]
    fn ip_is_read_again_as_it_was_written(text in ip_argument()) {
        let ip = Ip::parse(&text);
        prop_assert!(ip.is_ok(), "{}: {}", text, ip.unwrap_err());
        let written = ip.clone().unwrap().to_string();
        prop_assert_eq!(Ip::parse(&written), ip, "{} -> {}", text, written);
    }

    #[test]
    fn an_ip_that_is_cut_short_is_no_panic(text in ip_argument(), at in any::<prop::sample::Index>()) {
        let end = at.index(text.len() + 1);
        if let Ok(ip) = Ip::parse(&text[..end]) {
            let written = ip.to_string();
            let again = Ip::parse(&written).unwrap();
            prop_assert_eq!(Ip { is_cluster: ip.is_cluster, ..again }, ip);
        }
    }

    #[test]
    fn every_spelling_of_a_guid_is_the_same_guid(number in any::<u64>(), head in any::<[u8; 12]>()) {
        let guid = Guid(number);
        let groups = number.to_be_bytes().map(|byte| format!("{byte:02x}"));
        let (colons, dashes) = (groups.join(":"), groups.join("-"));
        let head: String = head.iter().map(|byte| format!("{byte:02x}:")).collect();
        let spellings = [
            guid.to_string(), format!("{guid:#}"), guid.to_string().to_uppercase().replacen("0X", "0x", 1),
            colons.clone(), dashes.clone(), format!("20:{colons}"), format!("20-{dashes}"), format!("{head}{colons}"),
        ];
        for text in spellings {
            let address = HwAddr::parse(&text);
            prop_assert_eq!(address.and_then(|address| address.guid()), Some(guid), "{}", text);
            prop_assert!(address.unwrap().matches_guid(guid) && address.unwrap().is_infiniband());
            prop_assert_eq!(HwAddr::parse(&address.unwrap().to_string()), address);
        }
    }

    #[test]
    fn pci_addresses_and_partitions_are_read_again(domain in any::<u32>(), bus in any::<u8>(), device in 0_u8..32,
                                                   function in 0_u8..8, key in 1_u16..=0x7fff, full in any::<bool>()) {
        let pci = PciAddress { domain, bus, device, function };
        prop_assert_eq!(PciAddress::parse(&pci.to_string()), Some(pci));
        let key = if full { key | 0x8000 } else { key };
        let text = format!("ib0.{key:04x}");
        let pkey = Pkey::parse(&text).unwrap();
        prop_assert_eq!((pkey.key, pkey.full()), (key, key | 0x8000));
        prop_assert_eq!(pkey.to_string(), text);
    }

    /// One slip of the finger in a name is understood.
    #[test]
    fn a_slip_is_named(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), swap in any::<bool>()) {
        let names: Vec<&str> = PARAMETERS.iter().filter_map(|parameter| parameter.name.strip_prefix("rd.ib.")).collect();
        let name = names[which.index(names.len())];
        let mut letters = name.as_bytes().to_vec();
        let at = at.index(letters.len() - 1);
        if swap { letters.swap(at, at + 1) } else { letters.remove(at); }
        let written = String::from_utf8(letters).unwrap();
        // As near to roce as to probe.
        prop_assume!(written != "robe");
        prop_assert_eq!(nearest(&written, names.iter().copied()), Some(name), "{}", written);
        prop_assume!(!names.contains(&written.as_str()));
        let line = format!("rd.ib.{written}=1");
        let sources = [Source::new("line", line.as_bytes())];
        let arguments = parse(&sources);
        let wanted = format!("rd.ib.{name}");
        match arguments.complaints[0].problem {
            Problem::Unknown { nearest: Some(nearest) } => prop_assert_eq!(nearest, wanted),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
