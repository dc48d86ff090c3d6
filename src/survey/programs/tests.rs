// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::facts::{Device, Port, Role};
use crate::rdma::types::LinkLayer;

const RDMA: &str = r#"[{"ifindex":0,"ifname":"mlx5_0","port":1,
    "subnet_prefix":"fe80:0000:0000:0000","lid":2,"sm_lid":1,"lmc":0,
    "state":"ACTIVE","physical_state":"LINK_UP"}]"#;

const IBSTAT: &str = "CA 'mlx5_0'
\tCA type: MT4123
\tNumber of ports: 1
\tFirmware version: 20.31.1014
\tHardware version: 0
\tNode GUID: 0x0250f7000000a000
\tSystem image GUID: 0x0250f7000000a000
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 40
\t\tBase lid: 2
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0x02514868
\t\tPort GUID: 0x0250f7000000a001
\t\tLink layer: InfiniBand
";

const DEVINFO: &str = "hca_id:\tmlx5_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t20.31.1014
\tnode_guid:\t\t\t0250:f700:0000:a000
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t1
\t\t\tport_lid:\t\t2
\t\t\tport_lmc:\t\t0x00
\t\t\tlink_layer:\t\tInfiniBand
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80::250:f700:0:a001
";

fn facts() -> Facts {
    let port = Port {
        port: 1,
        state: Some(PortState::Active),
        physical_state: Some(PhysState::LinkUp),
        lid: Some(2),
        sm_lid: Some(1),
        lmc: Some(0),
        link_layer: Some(LinkLayer::InfiniBand),
        port_guid: Some(Guid(0x0250_f700_0000_a001)),
        ..Port::default()
    };
    let device = Device {
        ifname: "mlx5_0".into(),
        node_guid: Some(Guid(0x0250_f700_0000_a000)),
        fw: Some("20.31.1014".into()),
        ports: vec![port],
        ..Device::default()
    };
    Facts {
        devices: vec![device],
        ..Facts::default()
    }
}

fn lines(facts: &Facts, program: usize, output: &str) -> Vec<String> {
    let program = &PROGRAMS[program];
    let told = (program.parse)(output).unwrap();
    let claims = compare(facts, program, &told);
    claims.iter().map(ToString::to_string).collect()
}

#[test]
fn three_programs_that_agree() {
    assert_eq!(
        lines(&facts(), 0, RDMA),
        [
            "mlx5_0/1 state: facts ACTIVE, rdma -j link ACTIVE: PASS",
            "mlx5_0/1 physical state: facts LinkUp, rdma -j link LinkUp: PASS",
            "mlx5_0/1 LID: facts 2, rdma -j link 2: PASS",
            "mlx5_0/1 SM LID: facts 1, rdma -j link 1: PASS",
            "mlx5_0/1 LMC: facts 0, rdma -j link 0: PASS",
        ]
    );
    let ibstat = lines(&facts(), 1, IBSTAT);
    assert_eq!(ibstat.len(), 9, "{ibstat:#?}");
    assert!(ibstat.iter().all(|line| line.ends_with(": PASS")));
    assert_eq!(
        ibstat[1],
        "mlx5_0/1 node GUID: facts 0x0250f7000000a000, ibstat 0x0250f7000000a000: PASS"
    );
    let devinfo = lines(&facts(), 2, DEVINFO);
    assert_eq!(devinfo.len(), 7, "{devinfo:#?}");
    assert!(devinfo.iter().all(|line| line.ends_with(": PASS")));
}

#[test]
fn each_difference_fails() {
    let line = &lines(&facts(), 0, &RDMA.replace("ACTIVE", "INIT"))[0];
    assert_eq!(
        line,
        "mlx5_0/1 state: facts ACTIVE, rdma -j link INIT: FAIL: the values differ"
    );
    let line = &lines(&facts(), 1, &IBSTAT.replace("Active", "Initializing"))[2];
    assert_eq!(
        line,
        "mlx5_0/1 state: facts ACTIVE, ibstat INIT: FAIL: the values differ"
    );
    // A word that no version of the program is known to print.
    let line = &lines(&facts(), 1, &IBSTAT.replace("LinkUp", "Lin\u{1b}kUp"))[3];
    let expected = "mlx5_0/1 physical state: facts LinkUp, ibstat \"Lin\\u{1b}kUp\": \
                    FAIL: the values differ";
    assert_eq!(line, expected);
    let mut unread = facts();
    unread.devices[0].ports[0].lid = None;
    assert_eq!(
        lines(&unread, 2, DEVINFO)[3],
        "mlx5_0/1 LID: facts nothing, ibv_devinfo -v 2: FAIL: the values differ"
    );
}

#[test]
fn a_port_that_only_one_side_has_is_told() {
    let other = RDMA.replace("mlx5_0", "mlx5_1");
    assert_eq!(
        lines(&facts(), 0, &other),
        [
            "mlx5_0/1 listed by rdma -j link: FAIL: not in its output",
            "mlx5_1/1 in the facts: FAIL: rdma -j link lists the port",
        ]
    );
    assert_eq!(
        lines(&facts(), 2, &DEVINFO.replace("mlx5_0", "mlx5_1"))[0],
        "mlx5_0/1 listed by ibv_devinfo -v: SKIP: not in its output"
    );
}

#[test]
fn a_port_that_carries_no_link_is_in_the_facts() {
    let mut switch = facts();
    switch.devices[0].ports[0].role = Role::Nvlink;
    assert!(lines(&switch, 0, RDMA).is_empty());
}

#[test]
fn states_that_the_programs_spell_differently() {
    for (text, expected) in [
        ("ARMED", "PortConfigurationTraining"),
        ("PortConfigurationTraining", "PortConfigurationTraining"),
        ("LINK_ERROR_RECOVER", "LinkErrorRecovery"),
        ("PhyTest", "Phy Test"),
        ("OPA_OFFLINE", "<unknown>(9)"),
        ("DISABLED (3)", "Disabled"),
        ("DISABLED (999)", "\"DISABLED (999)\""),
    ] {
        assert_eq!(Field::PhysicalState.canonical(text), expected, "{text}");
    }
    assert_eq!(Field::Lid.canonical("0xC001"), "49153");
    assert_eq!(Field::Lid.canonical("-1"), "\"-1\"");
    assert_eq!(Field::PortGuid.canonical("0x1"), "\"0x1\"");
}

#[test]
fn output_without_devices_is_an_error() {
    assert_eq!(
        rdma_link("{}").unwrap_err(),
        "invalid type: map, expected a sequence at line 1 column 0"
    );
    let why = "an entry has no ifname or no port";
    assert_eq!(rdma_link(r#"[{"port":1}]"#).unwrap_err(), why);
    assert_eq!(rdma_link("[]").unwrap(), []);
    for parse in [ibstat, ibv_devinfo] {
        assert_eq!(parse("").unwrap_err(), "no device in its output");
    }
}

proptest! {
    #[test]
    fn no_output_panics(text in "\\PC*|(CA 'a'|hca_id:|Port |port:|State: |GUID:|[0-9a-fx: ()\t\n])*") {
        for program in &PROGRAMS {
            if let Ok(told) = (program.parse)(&text) {
                compare(&facts(), program, &told);
            }
        }
    }
}
