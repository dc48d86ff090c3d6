// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams as Linux 6.1.192 and 6.12.117 sent them for rxe links (little endian).

#![cfg(target_endian = "little")]

mod hostile;
mod sockets;

use netlink_packet_core::NlasIterator;

use super::*;

const SEQ: u32 = 7;

/// Dump of GET, one device: 6.1.
const DEVICE_6_1: &str = "6c00000001140200070000004c63d590080001000300000009000200727865300000000008\
    000300010000000c000400763c2201000000000c000600563412feff0054500c000700563412feff00545005000e000100\
    0000050054000000000009004300726f636500000000";
/// Dump of GET, one device: 6.12, with NAME_ASSIGN_TYPE and capabilities beyond 32 bits.
const DEVICE_6_12: &str = "740000000114020007000000f3b328f50800010003000000090002007278653000000000\
    08000300010000000c000400763c2201c00100000c000600563412feff0054500c000700563412feff00545005000e0001\
    0000000500540000000000050065000100000009004300726f636500000000";
/// Dump of GET, a software InfiniBand HCA under 6.1.
const IB_DEVICE: &str = "7000000001140200070000009532ee91080001007d0000000c000200736f66746962300008000300020000000c\
    000400801c20000000000008000500302e31000c00060000a0000000f750020c00070000a0000000f750020500\
    0e000100000005005400000000000700430069620000";
/// Dump of PORT_GET of this HCA, both ports in one datagram: ACTIVE beside opensm, and INIT without
/// a subnet manager.
const IB_PORTS: &str = "6c0000000514020007000000853428ba080001007d0000000c000200736f66746962300008000300010000000c\
    00040048080102000000000c00080000000000000080fe080009000200000008000a000100000005000b000000\
    000005000c000400000005000d00050000006c0000000514020007000000853428ba080001007d0000000c0002\
    00736f66746962300008000300020000000c00040048080102000000000c00080000000000000080fe08000900\
    0000000008000a000000000005000b000000000005000c000200000005000d0005000000";
/// End of a dump.
const DONE: &str = "140000000300020007000000f3b328f500000000";
/// Dump of PORT_GET (5125).
const PORT_DUMP: &str = "5000000005140200070000004f0f2ec30800010003000000090002007278653000000000080003\
    000100000005000c000400000005000d00050000000800320002000000090033006574683000000000";
/// Single PORT_GET, answered as GET (5121).
const PORT_SINGLE: &str = "5000000001140000070000004e07dde608000100030000000900020072786530000000000800\
    03000100000005000c000400000005000d00050000000800320002000000090033006574683000000000";
/// The acknowledgement that follows PORT_SINGLE.
const PORT_ACK: &str = "2400000002000001070000004e07dde60000000020000000051405000700000000000000";
/// Single PORT_GET of a missing port: EINVAL, with a copy of the request.
const PORT_EINVAL: &str = "34000000020000000700000009194fbeeaffffff2000000005140500070000000000000008000100\
    030000000800030002000000";
/// Dump of PORT_GET of a missing device: EINVAL in NLMSG_DONE.
const PORTS_EINVAL: &str = "14000000030002000700000095392c8ceaffffff";
/// NEWLINK, acknowledged.
const NEWLINK_ACK: &str =
    "240000000200000107000000347763cd0000000030000000031405000700000000000000";
/// NEWLINK on a network device that already has a link.
const NEWLINK_EEXIST: &str = "44000000020000000700000019cef3d6efffffff3000000003140500070000000000000009000200\
    72786531000000000800410072786500090033006574683000000000";
/// NEWLINK on a missing network device.
const NEWLINK_ENODEV: &str = "440000000200000007000000aaecf4a8edffffff3000000003140500070000000000000009000200\
    727865310000000008004100727865000a0033006e6f706530000000";
/// GET_CHARDEV of uverbs.
const CHARDEV: &str = "3c0000000f1400000700000023a8c1ac080049000e0000000c004800c0e70000000000000c00470002\
    000000000000000c0046007576657262733000";
/// Notifications of 6.12.
const REGISTER: &str =
    "2c0000001c140000000000000000000008000100030000000900020072786530000000000500660000000000";
const ATTACH: &str = "480000001c1400000000000000000000080001000300000009000200727865300000000008000300010000000800\
    3200020000000900330065746830000000000500660002000000";
const UNREGISTER: &str =
    "2c0000001c140000000000000000000008000100040000000900020072786531000000000500660001000000";

const ALL: [&str; 17] = [
    IB_DEVICE,
    IB_PORTS,
    DEVICE_6_1,
    DEVICE_6_12,
    DONE,
    PORT_DUMP,
    PORT_SINGLE,
    PORT_ACK,
    PORT_EINVAL,
    PORTS_EINVAL,
    NEWLINK_ACK,
    NEWLINK_EEXIST,
    NEWLINK_ENODEV,
    CHARDEV,
    REGISTER,
    ATTACH,
    UNREGISTER,
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Outcome of a request whose answer arrives as these datagrams.
fn outcome<T>(
    datagrams: &[Vec<u8>],
    read: fn(&[u8]) -> std::result::Result<T, DecodeError>,
) -> (Vec<T>, std::result::Result<bool, String>) {
    let mut values = Vec::new();
    let mut progress = Progress::default();
    let mut end = Ok(false);
    for datagram in datagrams {
        end = progress
            .digest(datagram, SEQ, &mut |payload| {
                values.push(read(payload)?);
                Ok(())
            })
            .map_err(|error| match error.errno() {
                Some(errno) => format!("{errno:?}"),
                None => error.to_string(),
            });
        if end != Ok(false) {
            break;
        }
    }
    (values, end)
}

fn rxe0() -> Device {
    Device {
        index: 3,
        name: "rxe0".to_owned(),
        ports: 1,
        node_guid: Guid(0x5054_00ff_fe12_3456),
        node_type: NodeType::Ca,
        device_type: None,
        parent: None,
    }
}

fn rxe0_port() -> Port {
    Port {
        port: 1,
        state: PortState::Active,
        phys_state: PhysState::LinkUp,
        lid: None,
        sm_lid: None,
        lmc: None,
        cap_flags: None,
        netdev_index: Some(2),
        netdev: Some("eth0".to_owned()),
    }
}

#[test]
fn requests_are_the_bytes_that_the_kernel_took() {
    let table = [
        (Request::dump(Op::Get), "10000000011401030700000000000000"),
        (
            Request::dump(Op::PortGet).u32(attr::DEV_INDEX, 3),
            "180000000514010307000000000000000800010003000000",
        ),
        (
            Request::ask(Op::Newlink)
                .text(attr::DEV_NAME, "rxe0")
                .text(attr::LINK_TYPE, "rxe")
                .text(attr::NDEV_NAME, "eth0"),
            "3000000003140500070000000000000009000200727865300000000008004100727865000900330065746830\
             00000000",
        ),
        (
            Request::ask(Op::GetChardev)
                .u32(attr::DEV_INDEX, 3)
                .text(attr::CHARDEV_TYPE, "uverbs"),
            "240000000f140500070000000000000008000100030000000b0045007576657262730000",
        ),
        (
            Request::ask(Op::SysSet).u8(attr::NETNS_MODE, 0),
            "180000000714050007000000000000000500420000000000",
        ),
    ];
    for (request, expected) in table {
        assert_eq!(request.bytes(SEQ), bytes(expected), "{request:?}");
    }
}

#[test]
fn devices_of_both_kernels() {
    // The whole dump in one datagram, or each message in a datagram of its own.
    let dump = vec![bytes(DEVICE_6_1), bytes(DONE)];
    assert_eq!(outcome(&dump, wire::device), (vec![rxe0()], Ok(true)));
    let dump = vec![[bytes(DEVICE_6_12), bytes(DEVICE_6_1), bytes(DONE)].concat()];
    let both = vec![rxe0(), rxe0()];
    assert_eq!(outcome(&dump, wire::device), (both, Ok(true)));
    assert_eq!(
        outcome(&[bytes(DONE)], wire::device),
        (vec![], Ok(true)),
        "a node without RDMA devices"
    );
}

/// The datagram without the attributes that Linux 4.18 does not have: those behind the network
/// device (`fill_dev_info` and `fill_port_info` of that kernel).
fn of_4_18(datagram: &str) -> Vec<u8> {
    let datagram = bytes(datagram);
    let message = wire::messages(&datagram).next().unwrap().unwrap();
    let mut kept = datagram[..16].to_vec();
    for attribute in NlasIterator::new(message.payload()) {
        let attribute = attribute.unwrap();
        if attribute.kind() <= attr::NDEV_NAME {
            kept.extend(put(attribute.kind(), attribute.value()));
        }
    }
    let length = u32::try_from(kept.len()).unwrap();
    kept[..4].copy_from_slice(&length.to_ne_bytes());
    kept
}

#[test]
fn a_kernel_4_18_reports_fewer_attributes() {
    let dump = vec![of_4_18(DEVICE_6_12), bytes(DONE)];
    assert_eq!(outcome(&dump, wire::device), (vec![rxe0()], Ok(true)));
    let dump = vec![of_4_18(PORT_DUMP), bytes(DONE)];
    assert_eq!(outcome(&dump, wire::port), (vec![rxe0_port()], Ok(true)));
}

#[test]
fn a_sub_device_names_its_type_and_parent() {
    let attributes = Request::ask(Op::Get)
        .u32(attr::DEV_INDEX, 3)
        .text(attr::DEV_NAME, "smi1")
        .u32(attr::NODE_GUID, 1)
        .u32(attr::DEV_TYPE, 1)
        .text(attr::PARENT_NAME, "mlx5_0")
        .bytes(SEQ);
    let device = wire::device(&attributes[16..]).unwrap();
    let parent = device.parent.as_deref();
    assert_eq!((device.device_type, parent), (Some(1), Some("mlx5_0")));
    let garbled = Request::ask(Op::Get).u32(attr::DEV_TYPE, 256).bytes(SEQ);
    assert_eq!(
        wire::device(&garbled[16..]).unwrap_err().to_string(),
        format!(
            "attribute {} is not a number of the expected size",
            attr::DEV_TYPE
        )
    );
}

#[test]
fn ports_by_dump_and_alone() {
    let dump = vec![bytes(PORT_DUMP), bytes(DONE)];
    assert_eq!(outcome(&dump, wire::port), (vec![rxe0_port()], Ok(true)));
    let single = vec![bytes(PORT_SINGLE), bytes(PORT_ACK)];
    assert_eq!(outcome(&single, wire::port), (vec![rxe0_port()], Ok(true)));
    assert_eq!(
        outcome(&[bytes(PORT_SINGLE)], wire::port).1,
        Ok(false),
        "not over before the acknowledgement"
    );
}

#[test]
fn infiniband_ports_before_and_after_the_subnet_manager() {
    let device = Device {
        index: 125,
        name: "softib0".to_owned(),
        ports: 2,
        node_guid: Guid(0x0250_f700_0000_a000),
        node_type: NodeType::Ca,
        device_type: None,
        parent: None,
    };
    assert_eq!(
        outcome(&[bytes(IB_DEVICE)], wire::device),
        (vec![device], Ok(false))
    );
    let active = Port {
        port: 1,
        state: PortState::Active,
        phys_state: PhysState::LinkUp,
        lid: Some(2),
        sm_lid: Some(1),
        lmc: Some(0),
        cap_flags: Some(0x0201_0848),
        netdev_index: None,
        netdev: None,
    };
    let init = Port {
        port: 2,
        state: PortState::Init,
        lid: Some(0),
        sm_lid: Some(0),
        ..active.clone()
    };
    assert_eq!(
        outcome(&[bytes(IB_PORTS), bytes(DONE)], wire::port),
        (vec![active, init], Ok(true))
    );
}

#[test]
fn padding_and_unknown_attributes_are_skipped() {
    // PAD (0) of nla_put_64bit, and number 9999 of an odd length, between the known attributes.
    let extra = [4, 0, 0, 0, 7, 0, 0x0f, 0x27, 1, 2, 3, 0];
    let mut message = bytes(PORT_DUMP);
    message.splice(24..24, extra);
    message[0] += 12;
    assert_eq!(
        outcome(&[message, bytes(DONE)], wire::port),
        (vec![rxe0_port()], Ok(true))
    );
}

#[test]
fn refusals_keep_their_errno() {
    let table = [
        (PORT_EINVAL, Err("EINVAL".to_owned())),
        (PORTS_EINVAL, Err("EINVAL".to_owned())),
        (NEWLINK_EEXIST, Err("EEXIST".to_owned())),
        (NEWLINK_ENODEV, Err("ENODEV".to_owned())),
        (NEWLINK_ACK, Ok(true)),
    ];
    for (hex, expected) in table {
        assert_eq!(
            outcome(&[bytes(hex)], wire::port),
            (vec![], expected),
            "{hex}"
        );
    }
    let errors: Vec<String> = [
        Error::Kernel(Errno::EEXIST),
        Error::Timeout,
        Error::Name("a\0b".to_owned()),
        Error::Malformed("attribute length 3".into()),
    ]
    .iter()
    .map(Error::to_string)
    .collect();
    assert_eq!(
        errors,
        [
            "EEXIST: File exists",
            "no answer from the kernel within 5 s",
            r#""a\0b" is not a name that the kernel accepts"#,
            "malformed netlink message: attribute length 3",
        ]
    );
}

#[test]
fn an_error_without_errno_is_malformed() {
    let mut message = bytes(PORTS_EINVAL);
    message[16..].copy_from_slice(&i32::MIN.to_ne_bytes());
    assert_eq!(
        outcome(&[message], wire::port).1,
        Err("malformed netlink message: error without errno".to_owned())
    );
}

#[test]
fn answers_to_an_earlier_request_are_skipped() {
    let mut late = [bytes(DEVICE_6_1), bytes(NEWLINK_EEXIST)].concat();
    let second = bytes(DEVICE_6_1).len();
    late[8] = 6;
    late[second + 8] = 6;
    let datagrams = [late, bytes(DEVICE_6_1), bytes(DONE)];
    assert_eq!(outcome(&datagrams, wire::device), (vec![rxe0()], Ok(true)));
}

#[test]
fn a_dump_during_which_devices_changed_is_an_error() {
    let mut first = bytes(DEVICE_6_1);
    // NLM_F_DUMP_INTR
    first[6] |= 0x10;
    let (_, end) = outcome(&[first, bytes(DONE)], wire::device);
    assert_eq!(end, Err("EINTR".to_owned()));
}

#[test]
fn a_reply_without_a_required_attribute_is_refused() {
    let (values, end) = outcome(&[bytes(PORT_DUMP)], wire::device);
    assert_eq!(
        (values, end),
        (
            vec![],
            Err("malformed netlink message: no attribute 6".to_owned())
        )
    );
}

#[test]
fn character_device() {
    let (values, end) = outcome(&[bytes(CHARDEV)], wire::chardev);
    assert_eq!((values, end), (vec!["uverbs0".to_owned()], Ok(false)));
}

/// An attribute, padded.
fn put(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A `struct sockaddr_storage`, as fill_res_cm_id_entry of nldev.c puts it.
fn storage(family: i32, port: u16, address: &[u8]) -> Vec<u8> {
    let family = u16::try_from(family).unwrap();
    let mut bytes = [family.to_ne_bytes(), port.to_be_bytes()].concat();
    if usize::from(family) == libc::AF_INET6 as usize {
        bytes.extend([0; 4]);
    }
    bytes.extend(address);
    bytes.resize(128, 0);
    bytes
}

#[test]
fn every_holder_is_read_with_its_owner() {
    let bytes = |kind: u16, value: &[u8]| {
        let nla = netlink_packet_core::DefaultNla::new(kind, value.to_vec());
        let mut bytes = vec![0; netlink_packet_core::Emitable::buffer_len(&nla)];
        netlink_packet_core::Emitable::emit(&nla, &mut bytes);
        bytes
    };
    let port = bytes(attr::PORT_INDEX, &1_u32.to_ne_bytes());
    let module = bytes(attr::RES_KERN_NAME, b"ib_ipoib\0");
    let pid = bytes(attr::RES_PID, &77_u32.to_ne_bytes());
    let first = bytes(attr::RES_QP_ENTRY, &[port, module].concat());
    let second = bytes(attr::RES_CM_ID_ENTRY, &pid);
    let payload = [
        bytes(attr::DEV_NAME, b"mlx5_0\0"),
        bytes(attr::RES_QP, &first),
        bytes(attr::RES_CM_ID, &second),
    ];
    let expected = [
        Holder {
            what: "queue pair",
            port: Some(1),
            module: Some("ib_ipoib".into()),
            pid: None,
        },
        Holder {
            what: "cm_id",
            port: None,
            module: None,
            pid: Some(77),
        },
    ];
    assert_eq!(wire::holders(&payload.concat()).unwrap(), expected);
    // What is not understood is not left out.
    let wrong = bytes(attr::RES_QP_ENTRY, &bytes(attr::RES_PID, &[1, 2, 3]));
    assert_eq!(
        wire::holders(&bytes(attr::RES_QP, &wrong))
            .unwrap_err()
            .to_string(),
        format!(
            "attribute {} is not a number of the expected size",
            attr::RES_PID
        )
    );
}

#[test]
fn only_connections_in_the_state_connect_are_read() {
    const NESTED: u16 = 0x8000;
    let entry = |state: u8, port: Option<u32>, from: Vec<u8>, to: Vec<u8>| {
        let port = port.map(|port| put(attr::PORT_INDEX, &port.to_ne_bytes()));
        let inside = [
            port.unwrap_or_default(),
            put(attr::RES_STATE, &[state]),
            put(attr::RES_KERN_NAME, b"rpcrdma\0"),
            put(attr::RES_SRC_ADDR, &from),
            put(attr::RES_DST_ADDR, &to),
        ];
        put(attr::RES_CM_ID_ENTRY | NESTED, &inside.concat())
    };
    let v4 = |last, port| storage(libc::AF_INET, port, &[10, 0, 0, last]);
    let mut fd00 = [0; 16];
    (fd00[0], fd00[15]) = (0xfd, 2);
    let v6 = storage(libc::AF_INET6, 20049, &fd00);
    let table = [
        entry(8, None, v4(0, 20049), v4(0, 0)),
        entry(5, Some(1), v4(1, 34203), v4(2, 20049)),
        entry(6, Some(1), v4(1, 34204), v4(2, 20049)),
        entry(5, Some(2), v6.clone(), v6),
        // An address of an unknown family (AF_IB).
        entry(5, Some(1), storage(27, 0, &[]), v4(2, 20049)),
    ];
    let body = [
        put(attr::DEV_INDEX, &1_u32.to_ne_bytes()),
        put(attr::DEV_NAME, b"mlx5_0\0"),
        put(attr::RES_CM_ID | NESTED, &table.concat()),
    ]
    .concat();
    let kind = Op::ResCmIdGet.message_type().to_ne_bytes();
    let datagram = |body: &[u8]| {
        let length = u32::try_from(16 + body.len()).unwrap().to_ne_bytes();
        [&length, [kind[0], kind[1], 2, 0].as_slice(), &[0; 8], body].concat()
    };
    let read = |datagram: &[u8]| {
        let message = wire::messages(datagram).next().unwrap().unwrap();
        wire::connections(message.payload())
    };
    let connection = |port, source: &str, destination: &str| Connection {
        ifname: "mlx5_0".to_owned(),
        port: Some(port),
        owner: Some("rpcrdma".to_owned()),
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    };
    let expected = vec![
        connection(1, "10.0.0.1:34203", "10.0.0.2:20049"),
        connection(2, "[fd00::2]:20049", "[fd00::2]:20049"),
    ];
    assert_eq!(read(&datagram(&body)).unwrap(), expected);
    for length in 0..body.len() {
        let found = read(&datagram(&body[..length])).unwrap_or_default();
        assert!(found.len() <= 2, "cut at {length}");
    }
}

#[test]
fn notifications() {
    let mut events = Vec::new();
    for hex in [REGISTER, ATTACH, UNREGISTER, DEVICE_6_12] {
        read_notifications(&bytes(hex), &mut events);
    }
    let event = |kind, index, name: &str| MonitorEvent {
        kind,
        dev_index: Some(index),
        dev_name: Some(name.to_owned()),
        ..MonitorEvent::default()
    };
    assert_eq!(
        events,
        [
            event(MonitorKind::Register, 3, "rxe0"),
            MonitorEvent {
                port: Some(1),
                netdev_index: Some(2),
                netdev: Some("eth0".to_owned()),
                ..event(MonitorKind::NetdevAttach, 3, "rxe0")
            },
            event(MonitorKind::Unregister, 4, "rxe1"),
        ]
    );
    let mut events = Vec::new();
    read_notifications(&bytes(REGISTER)[..20], &mut events);
    assert_eq!(events, [MonitorEvent::default()]);
}

#[test]
fn names_the_kernel_cannot_take() {
    assert_eq!(bounded("rxe0", SHORT_NAME).unwrap(), "rxe0");
    let longest = "n".repeat(DEVICE_NAME - 1);
    assert_eq!(bounded(&longest, DEVICE_NAME).unwrap(), longest);
    for name in ["", "a\0b", "sixteen-bytes-xx"] {
        match bounded(name, SHORT_NAME) {
            Err(Error::Name(found)) => assert_eq!(found, name),
            other => panic!("{name:?}: {other:?}"),
        }
    }
}
