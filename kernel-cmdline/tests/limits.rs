// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources together, fixed capacities, and addresses that match.

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
    Arguments, COMPLAINTS, Cmdline, DRIVERS, Escaped, Guid, HwAddr, INTERFACES, Source, WISHES,
    is_rdma_module, parse,
};

fn lines(arguments: &Arguments<'_>) -> Vec<String> {
    arguments
        .complaints
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The order is the caller's, the last one counts, and each value names its source.
#[test]
fn sources_are_read_in_order() {
    let sources = [
        Source::new(
            "/etc/cmdline.d/50-site.conf",
            b"rd.retry=1 ip=ib1:dhcp\nrd.net.dhcp.retry=7\n",
        ),
        Source::new("/etc/cmdline", b""),
        Source::new("/proc/cmdline", b"quiet rd.retry=2\n"),
        Source::new(
            "/run/initramfs/cmdline.d/x.conf",
            b"\n\nrd.retry=3 rd.ib.mod=x",
        ),
    ];
    let arguments = parse(&sources);
    let retry = arguments.retry.unwrap();
    assert_eq!(
        (retry.value, retry.source, retry.column),
        (3, "/run/initramfs/cmdline.d/x.conf", 3)
    );
    let tries = arguments.net.dhcp.retry.unwrap();
    assert_eq!(
        (tries.value, tries.source, tries.column),
        (7, "/etc/cmdline.d/50-site.conf", 24)
    );
    assert_eq!(arguments.requested_by().unwrap().raw, b"ip=ib1:dhcp");
    assert_eq!(
        lines(&arguments),
        [
            "/run/initramfs/cmdline.d/x.conf:14: rd.ib.mod=****: unknown argument; did you mean rd.ib.mode?"
        ]
    );
}

/// A quote left open in one source does not reach into the next one.
#[test]
fn an_open_quote_ends_with_its_source() {
    let sources = [
        Source::new("first", b"a=\"b c\n"),
        Source::new("second", b"rd.retry=3 d=\"e\""),
    ];
    let values: Vec<_> = Cmdline::new(&sources)
        .tokens()
        .map(|token| token.value)
        .collect();
    assert_eq!(values, [Some(b"b c".as_slice()), Some(b"3"), Some(b"e")]);
}

fn repeated(argument: impl Fn(usize) -> String, count: usize) -> String {
    (0..count)
        .map(|number| format!("{} ", argument(number)))
        .collect()
}

type Length = fn(&Arguments<'_>) -> usize;

/// What does not fit is named, each with its column, and what fits is kept.
#[test]
fn a_full_list_is_said() {
    let cases: [(&str, usize, &str, Length); 5] = [
        ("ip=ib{}:dhcp", INTERFACES, "ip= arguments", |arguments| {
            arguments.net.ip.len()
        }),
        (
            "ib.pkey=ib{}.8001",
            INTERFACES,
            "ib.pkey= arguments",
            |arguments| arguments.pkeys.len(),
        ),
        (
            "rd.ib.mode=ib{}:auto",
            WISHES,
            "rd.ib.mode= arguments",
            |arguments| arguments.ib.modes.len(),
        ),
        (
            "rd.ib.link=r{}:rxe:eth0",
            WISHES,
            "rd.ib.link= arguments",
            |arguments| arguments.ib.links.len(),
        ),
        (
            "rd.driver.post=m{}",
            DRIVERS,
            "drivers of rd.driver.post=",
            |arguments| arguments.drivers.post.len(),
        ),
    ];
    for (pattern, limit, what, length) in cases {
        let argument = |number: usize| pattern.replace("{}", &number.to_string());
        let line = repeated(argument, limit + 2);
        let sources = [Source::new("line", line.as_bytes())];
        let arguments = parse(&sources);
        assert_eq!(length(&arguments), limit, "{pattern}");
        let expected: Vec<String> = [limit, limit + 1]
            .map(|number| {
                let column = repeated(argument, number).len() + 1;
                format!(
                    "line:{column}: {}: too many {what}: the limit is {limit}; remove some",
                    argument(number)
                )
            })
            .to_vec();
        assert_eq!(lines(&arguments), expected);
    }
}

/// Complaints have a capacity too; those that do not fit are counted.
#[test]
fn complaints_beyond_the_capacity_are_counted() {
    let line = repeated(|number| format!("rd.ib.nonsense{number}=1"), COMPLAINTS + 9);
    let sources = [Source::new("line", line.as_bytes())];
    let arguments = parse(&sources);
    assert_eq!(
        (arguments.complaints.len(), arguments.complaints_lost),
        (COMPLAINTS, 9)
    );
}

/// 64 KiB of anything, quotes that do not match among them.
#[test]
fn huge_lines_are_read() {
    const SIZE: usize = 64 * 1024;
    for pattern in [
        "\"",
        "a",
        " ",
        "=",
        "rd.ib.",
        "rd.ib.x=\" ",
        "ip=ib0:dhcp ",
        "ip=:",
        "\0",
        "\u{feff}",
        "ip=[",
        "\n",
    ] {
        let line = pattern.repeat(SIZE / pattern.len());
        invariants::check(&[Source::new("line", line.as_bytes())]);
    }
    let long = format!("rd.ib.mode={}", "x".repeat(SIZE));
    let sources = [Source::new("line", long.as_bytes())];
    let complaint = lines(&parse(&sources)).remove(0);
    let expected = format!(
        "line:1: rd.ib.mode={}...: '{}...' is not an IPoIB mode; write auto, connected or datagram",
        "x".repeat(Escaped::LIMIT - "rd.ib.mode=".len()),
        "x".repeat(Escaped::LIMIT),
    );
    assert_eq!(complaint, expected);
}

/// A complaint is one line, whatever the source is called.
#[test]
fn names_and_arguments_are_escaped() {
    let sources = [Source::new(
        "/etc/cmdline.d/a\nb.conf",
        b"rd.ib.mode=\x1b]0;x\x07=\xff\xc2\x9b \xe2\x80\xae",
    )];
    assert_eq!(
        lines(&parse(&sources)),
        [
            "/etc/cmdline.d/a\\x0ab.conf:1: rd.ib.mode=\\x1b]0;x\\x07=\\xff\\xc2\\x9b: \
          contains bytes that are not text, so the argument is ignored; write the argument in plain ASCII"
        ]
    );
}

#[test]
fn addresses_match_the_ports_they_mean() {
    let guid = Guid(0xb8ce_f603_0031_333e);
    for text in [
        "b8:ce:f6:31:33:3e",
        "01-b8-ce-f6-31-33-3e",
        "20-b8-ce-f6-31-33-3e",
        "b8:ce:f6:03:00:31:33:3e",
    ] {
        let address = HwAddr::parse(text).unwrap();
        assert!(address.matches_guid(guid), "{text}");
        for bit in [0, 15, 16, 47, 63] {
            let other = Guid(guid.0 ^ (1 << bit));
            assert!(!address.matches_guid(other), "{text} {other}");
        }
    }
    // The two bytes in the middle are not in a short form: any will do.
    assert!(
        HwAddr::parse("b8:ce:f6:31:33:3e")
            .unwrap()
            .matches_guid(Guid(0xb8ce_f6ff_ff31_333e))
    );
    // Another QPN and subnet prefix: the same interface.
    let full =
        HwAddr::parse("80:00:11:22:fe:c0:00:00:00:00:00:01:b8:ce:f6:03:00:31:33:3e").unwrap();
    assert!(full.matches_guid(guid));

    // Soft-RoCE makes modified EUI-64 of the MAC address.
    let soft = Guid(0x5054_00ff_fe12_3456);
    assert!(
        HwAddr::parse("52:54:00:12:34:56")
            .unwrap()
            .matches_guid(soft)
    );
    assert!(
        !HwAddr::parse("52:54:00:12:34:56")
            .unwrap()
            .matches_guid(Guid(0x5054_00ff_fd12_3456))
    );
}

#[test]
fn guids_are_written_in_two_ways() {
    let guid = Guid::parse("2:c903:a:1b2c");
    assert_eq!(guid, None, "groups of four have four digits");
    let guid = Guid::parse("0x2c903000a1b2c").unwrap();
    assert_eq!(
        (guid.to_string(), format!("{guid:#}")),
        ("0x0002c903000a1b2c".into(), "0002:c903:000a:1b2c".into())
    );
    for written in ["0x0002c903000a1b2c", "0002:c903:000a:1b2c"] {
        assert_eq!(Guid::parse_written(written), Some(guid));
    }
    for other in [
        "0x2c903000a1b2c",
        "0002c903000a1b2c",
        "00:02:c9:03:00:0a:1b:2c",
    ] {
        assert_eq!(Guid::parse(other), Some(guid));
        assert_eq!(Guid::parse_written(other), None, "{other}");
    }
}

#[test]
fn rdma_modules_are_known_by_either_spelling() {
    for module in [
        "mlx4_ib", "mlx5-ib", "ib_ipoib", "rdma_rxe", "siw", "hfi1", "ib_qib", "irdma", "bnxt_re",
    ] {
        assert!(is_rdma_module(module), "{module}");
    }
    for module in ["mlx5_core", "mlx4_en", "ice", "", "mlx5_ibx", "virtio_net"] {
        assert!(!is_rdma_module(module), "{module}");
    }
}
