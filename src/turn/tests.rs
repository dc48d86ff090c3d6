// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// `name` is offline, `name!` is online, `name!*` is online and had its turn.
fn interface(text: &str) -> Interface {
    Interface {
        name: text.trim_end_matches(['!', '*']).to_owned(),
        is_online: text.contains('!'),
        had_turn: text.ends_with('*'),
    }
}

/// `name`, or `name*` if the call had its turn.
fn held(text: &str) -> Held {
    Held {
        name: text.trim_end_matches('*').to_owned(),
        had_turn: text.ends_with('*'),
    }
}

/// Our interfaces; held interfaces follow a `|`.
fn state(text: &str) -> State {
    let (ours, others) = text.split_once('|').unwrap_or((text, ""));
    State {
        now_s: 100,
        verdict: Some(Outcome::Verified),
        interfaces: ours.split_whitespace().map(interface).collect(),
        held: others.split_whitespace().map(held).collect(),
        ..State::default()
    }
}

fn attempt(stage: Stage, since: u64) -> Option<Attempt> {
    Some(Attempt {
        stage,
        since,
        what: "before".to_owned(),
        reported: 0,
    })
}

/// An attempt that connects to NVMe servers again.
fn connect(since: u64) -> Option<Attempt> {
    let running = attempt(Stage::Running, since)?;
    Some(Attempt {
        stage: Stage::Connecting,
        ..running
    })
}

/// The steps of the hook, in one line.
fn line(state: &State) -> String {
    match turn(state) {
        Turn::Wait => "wait".to_owned(),
        Turn::Hold => "hold".to_owned(),
        Turn::Report {
            what,
            seconds,
            holds,
        } => format!("{what}: {seconds} s{}", if holds { ", hold" } else { "" }),
        Turn::Go {
            steps,
            what,
            failed,
        } => {
            let lines: String = steps.iter().map(Step::line).collect();
            let failed = failed.map(|failed| format!(" after {failed}"));
            format!(
                "{}: {what}{}",
                lines.trim_end().replace('\n', ", "),
                failed.unwrap_or_default()
            )
        }
    }
}

#[test]
fn each_interface_that_is_up_has_one_turn_in_order() {
    for (interfaces, expected) in [
        ("", "wait"),
        ("ib0", "wait"),
        ("ib0!", "online ib0, mount ib0: ib0"),
        (
            "ib1! ib0! ib2",
            "online ib1, mount ib1, online ib0, mount ib0: ib1 ib0",
        ),
        ("ib0!*", "wait"),
        ("ib0!* ib1!", "online ib1, mount ib1: ib1"),
        // Held for another network module: its `online` hooks have run.
        ("|eth0", "mount eth0: eth0"),
        ("|eth0*", "wait"),
        ("ib0!|eth0", "online ib0, mount ib0, mount eth0: ib0 eth0"),
        // Held with the name of an interface of ours: that interface has its own turn, or did not
        // come up.
        ("ib0!|ib0", "online ib0, mount ib0: ib0"),
        ("ib0!*|ib0", "wait"),
        ("ib0|ib0", "mount ib0: ib0"),
        ("ib0!|ib0*", "online ib0, mount ib0: ib0"),
    ] {
        assert_eq!(line(&state(interfaces)), expected, "{interfaces}");
        let after = State {
            last: attempt(Stage::Ended, 100),
            ..state(interfaces)
        };
        assert_eq!(line(&after), expected, "after an attempt: {interfaces}");
    }
}

#[test]
fn a_mount_is_tried_again_where_no_other_program_reports_the_failure() {
    let again = "mount ib0, mount eth0: ib0 eth0: ROOT after before";
    for (root, is_mounted, since, is_tried) in [
        ("nfs:10.0.0.2:/a", false, 95, true),
        ("nfs4:10.0.0.2:/a", false, 95, true),
        ("nfs", false, 95, true),
        ("nfs4:10.0.0.2:/a", false, 96, false),
        ("nfs4:10.0.0.2:/a", true, 95, false),
        ("iscsi:10.0.0.2::::iqn", false, 95, false),
        ("livenet:http", false, 95, false),
        ("dhcp", false, 95, false),
        ("nfsx:10.0.0.2:/a", false, 95, false),
    ] {
        let state = State {
            root: RootPath(root.into()),
            is_mounted,
            last: attempt(Stage::Ended, since),
            ..state("ib0!*|eth0*")
        };
        let expected = if is_tried {
            again.replace("ROOT", root)
        } else {
            "wait".to_owned()
        };
        assert_eq!(line(&state), expected, "{root} {is_mounted} {since}");
    }
    for scheme in ["cifs", "smb"] {
        let state = State {
            root: RootPath(format!("{scheme}://10.0.0.2/a").into()),
            last: attempt(Stage::Ended, 95),
            ..state("ib0!* ib1!")
        };
        let expected = format!(
            "mount ib0, online ib1, mount ib1: ib0 ib1: {scheme}://10.0.0.2/a after before"
        );
        assert_eq!(line(&state), expected);
    }
    // No interface is up any more.
    let nothing = State {
        root: RootPath(b"nfs:/a".to_vec()),
        last: attempt(Stage::Ended, 0),
        ..state("ib0")
    };
    assert_eq!(line(&nothing), "wait");
}

#[test]
fn nvme_servers_are_connected_to_behind_the_mounts_until_there_is_a_controller() {
    let nvme = |interfaces: &str, is_nvme_connected, since| State {
        has_nvme_server: true,
        is_nvme_connected,
        last: attempt(Stage::Ended, since),
        ..state(interfaces)
    };
    assert_eq!(
        line(&nvme("ib0!", false, 100)),
        "online ib0, mount ib0, nvme: ib0"
    );
    assert_eq!(
        line(&nvme("ib0!", true, 0)),
        "online ib0, mount ib0, nvme: ib0"
    );
    assert_eq!(line(&nvme("ib0!*", false, 96)), "wait");
    assert_eq!(line(&nvme("ib0!*", false, 95)), "nvme: ib0 after before");
    assert_eq!(line(&nvme("ib0!*", true, 95)), "wait");
}

#[test]
fn an_nvme_server_without_an_answer_repeats_no_login() {
    for (root, expected) in [
        ("", "nvme: ib0 eth0 after before"),
        ("iscsi:10.0.0.2::::iqn", "nvme: ib0 eth0: ROOT after before"),
        ("xcat", "nvme: ib0 eth0: ROOT after before"),
        (
            "nfs:10.0.0.2:/a",
            "mount ib0, mount eth0, nvme: ib0 eth0: ROOT after before",
        ),
    ] {
        let state = State {
            root: RootPath(root.into()),
            has_nvme_server: true,
            last: attempt(Stage::Ended, 95),
            ..state("ib0!*|eth0*")
        };
        assert_eq!(line(&state), expected.replace("ROOT", root), "{root}");
    }
    // An interface that comes up late has its turn as before.
    let late = State {
        has_nvme_server: true,
        last: attempt(Stage::Ended, 95),
        ..state("ib0!* ib1!|eth0* eth1")
    };
    assert_eq!(
        line(&late),
        "online ib1, mount ib1, mount eth1, nvme: ib0 eth0 ib1 eth1 after before"
    );
    let none_is_up = State {
        has_nvme_server: true,
        last: attempt(Stage::Ended, 0),
        ..state("ib0")
    };
    assert_eq!(line(&none_is_up), "wait");
}

#[test]
fn only_the_first_connect_to_an_nvme_server_stops_the_clock_of_dracut() {
    for (last, now_s, expected) in [
        (attempt(Stage::Running, 100), 110, "hold"),
        (attempt(Stage::Running, 100), 130, "before: 30 s, hold"),
        (connect(100), 110, "wait"),
        (connect(100), 130, "before: 30 s"),
    ] {
        let state = State {
            now_s,
            has_nvme_server: true,
            last,
            ..state("ib0!*")
        };
        assert_eq!(line(&state), expected);
    }
}

#[test]
fn a_slow_download_stops_the_clock_of_dracut_until_it_ends() {
    for root in ["livenet:http://10.0.0.1/a", "iscsi:10.0.0.2::::iqn", ""] {
        let attempted = |stage, now_s| State {
            now_s,
            root: RootPath(root.into()),
            last: attempt(stage, 100),
            ..state("ib0!*")
        };
        assert_eq!(line(&attempted(Stage::Running, 110)), "hold", "{root}");
        assert_eq!(line(&attempted(Stage::Running, 130)), "before: 30 s, hold");
        assert_eq!(line(&attempted(Stage::Ended, 130)), "wait");
    }
}

#[test]
fn a_mount_that_does_not_return_is_reported_every_30_s_and_nothing_else_begins() {
    let mut state = State {
        root: RootPath(b"nfs:/a".to_vec()),
        last: attempt(Stage::Running, 100),
        ..state("ib0!* ib1!|eth0")
    };
    let mut reports = Vec::new();
    for now_s in [100, 129, 130, 131, 159, 165, 189, 190, 250] {
        state.now_s = now_s;
        match turn(&state) {
            Turn::Report {
                what,
                seconds,
                holds,
            } => {
                assert!(!holds);
                assert_eq!(what, "before");
                assert_eq!(seconds, now_s - 100);
                reports.push(seconds);
                state.last.as_mut().unwrap().reported = seconds;
            }
            other => assert_eq!(other, Turn::Wait),
        }
    }
    assert_eq!(reports, [30, 65, 90, 150]);
}

#[test]
fn no_secret_of_a_root_path_is_shown() {
    for (root, expected) in [
        (
            "iscsi:user:S3C@RET:in:S3CR3T@10.0.0.2::::iqn",
            "iscsi:****@****@10.0.0.2::::iqn",
        ),
        ("S3CR3T@10.0.0.2", "****@10.0.0.2"),
        (
            "livenet:https://S3CR3T@10.0.0.2/r.img?token=S3CR3T",
            "livenet:https://****@10.0.0.2/r.img?****",
        ),
        (
            "livenet:https://10.0.0.2/r.img#S3CR3T?",
            "livenet:https://10.0.0.2/r.img#****",
        ),
        ("nfs4:10.0.0.2:/a@b?c", "nfs4:10.0.0.2:/a@b?c"),
        ("nfs:/a@b#c", "nfs:/a@b#c"),
        ("nfs://user:S3CR3T@10.0.0.2/a", "nfs://****@10.0.0.2/a"),
        ("nfs:10.0.0.2:/a\x1b b\u{e9}", "nfs:10.0.0.2:/a??b??"),
    ] {
        assert_eq!(RootPath(root.into()).shown(), expected);
    }
}

#[test]
fn the_boot_goes_on_when_the_verdict_and_all_turns_allow_it() {
    use Outcome::{Continue, Reboot, Shell, Verified};
    for (verdict, is_shell_left, expected) in [
        (None, true, false),
        (Some(Verified), false, true),
        (Some(Continue), false, true),
        (Some(Shell), false, false),
        (Some(Shell), true, true),
        (Some(Reboot), true, false),
    ] {
        let without = State {
            verdict,
            is_shell_left,
            ..state("ib0")
        };
        assert_eq!(may_go_on(&without), expected, "{verdict:?} {is_shell_left}");
        let waiting = State {
            interfaces: vec![interface("ib1!")],
            ..without
        };
        assert!(!may_go_on(&waiting), "{verdict:?} {is_shell_left}");
        let mounted = State {
            is_mounted: true,
            ..waiting
        };
        assert_eq!(may_go_on(&mounted), expected, "{verdict:?} {is_shell_left}");
    }
    for (interfaces, last, expected) in [
        ("ib0!*", None, false),
        ("ib0!*", attempt(Stage::Running, 0), false),
        ("ib0!*", attempt(Stage::Ended, 0), true),
        ("ib0!*", connect(0), true),
        ("ib0!* ib1!", connect(0), false),
        ("ib0!* ib1!", attempt(Stage::Ended, 0), false),
        ("ib0!* ib1", attempt(Stage::Ended, 0), true),
        // The boot does not wait for a held turn of another network module until the turn begins.
        ("|eth0", None, true),
        ("|eth0", attempt(Stage::Running, 0), false),
    ] {
        let state = State {
            last: last.clone(),
            ..state(interfaces)
        };
        assert_eq!(may_go_on(&state), expected, "{interfaces} {last:?}");
    }
    for (root, is_mounted, last, expected) in [
        ("xcat", true, None, true),
        ("xcat", true, attempt(Stage::Running, 0), false),
        ("xcat", true, attempt(Stage::Ended, 0), true),
        // It is there as a whole, and the attempt may never return.
        ("nfs4:10.0.0.2:/", true, attempt(Stage::Running, 0), true),
        ("nfs4:10.0.0.2:/", false, attempt(Stage::Running, 0), false),
    ] {
        let state = State {
            last: last.clone(),
            root: RootPath(root.into()),
            is_mounted,
            ..state("ib0!*")
        };
        assert_eq!(may_go_on(&state), expected, "{root} {is_mounted} {last:?}");
    }
}
