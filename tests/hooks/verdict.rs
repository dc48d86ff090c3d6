// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of `up`: a verdict, a crash, a hang, and what the boot does then.

use crate::stage::{ONLINE, SHELLS, play_in, plays};

#[test]
fn the_switch_to_the_real_root_waits_for_no_loader() {
    plays(
        "cleanup, systemd",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        cmdline rd.ib=1; source_hook cmdline
        DRACUT_SYSTEMD=1; systemctl() { echo \"systemctl $*\"; }; source_hook cleanup",
        "systemctl stop ibboot.service\nsystemctl reset-failed ibboot.service\n\
         systemctl --no-block stop ibboot-loader@*.service\n",
    );
}

#[test]
fn what_to_type_is_named_only_where_a_shell_opens() {
    plays(
        "no shell",
        "mkdir /run/ibboot; printf 'failed shell\\nno cable\\n' > /run/ibboot/result; NEWROOT=$3/sysroot
        echo 'ended 5 ib0: 10.0.0.2:/' > /run/ibboot/netroot
        for line in quiet rd.shell 'rd.shell=0 rd.break=mount' 'rd.shell=0 rdbreak'; do
            cmdline \"$line\"; source_hook emergency | wc -l
        done
        cmdline rd.shell=0; source_hook emergency",
        "6\n6\n6\n6\nibboot: no cable\nibboot: no root file system over ib0: 10.0.0.2:/\n",
    );
}

#[test]
fn a_hung_up_is_given_up_after_its_deadline_and_dracuts_time_restarts() {
    plays(
        "hung",
        "cmdline rd.ib=1 rd.ib.timeout=40; source_hook cmdline
        for now in 300.99 369.99 370.00 371.00; do
            uptime $now; main_loop=300; source_hook job; echo \"$now: $main_loop\"
            (source_hook finished); echo \"finished: $?\"
        done
        result; cat /dev/kmsg",
        "300.99: 0\nfinished: 1\n369.99: 0\nfinished: 1\n370.00: 0\nfinished: 0\n371.00: 300\nfinished: 0\n\
         result: failed continue|ibboot up: no verdict: still running 30 s after its deadline|\n\
         <3>ibboot: ibboot up: no verdict: still running 30 s after its deadline; the boot continues\n",
    );
}

#[test]
fn a_unit_that_systemd_cannot_start_ends_the_wait_at_the_next_turn() {
    let script = "DRACUT_SYSTEMD=1; systemctl() { cat /run/unit; }; uptime 300.00
        cmdline rd.ib=1 rd.ib.onfail=shell; source_hook cmdline; : > /run/ibboot/complete
        shown() {
            printf '%s\n' \"$@\" > /run/unit; source_hook job
            if [ -e /run/ibboot/result ]; then result; rm /run/ibboot/result; else echo waiting; fi
        }
        shown; shown LoadState=loaded ActiveState=active Result=success
        shown ActiveState=activating; shown ActiveState=deactivating Result=exit-code
        shown ActiveState=inactive Job=42; shown Job=42 ActiveState=failed
        cat /dev/kmsg; emergency_shell() { :; }
        shown Result=exit-code ExecMainStatus=226 LoadState=loaded ActiveState=failed Job= ConditionResult=yes
        cat /dev/kmsg; rm /run/ibboot/shell-left /dev/kmsg; mkdir -p /proc/self/fd; ln -s /dev/null /proc/self/fd/0
        shown ActiveState=inactive LoadState=bad-setting; cat /dev/console; ls /dev";
    for shell in SHELLS {
        let test = format!("unit, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let reason = |state: &str| {
                format!("ibboot.service does not run: {state}; see systemctl status ibboot.service")
            };
            let failed = reason(
                "Result=exit-code ExecMainStatus=226 LoadState=loaded ActiveState=failed Job= ConditionResult=yes",
            );
            let wrong = reason("ActiveState=inactive LoadState=bad-setting");
            let expected = format!(
                "{}result: failed shell|ibboot up: no verdict: {failed}|\n\
                 <3>ibboot: ibboot up: no verdict: {failed}; rd.ib.onfail=shell applies\n\
                 result: failed shell|ibboot up: no verdict: {wrong}|\n\
                 ibboot: ibboot up: no verdict: {wrong}; rd.ib.onfail=shell applies\nconsole\nnull\n",
                "waiting\n".repeat(6)
            );
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn a_crash_has_the_action_of_onfail() {
    let script = |onfail: &str, then: &str| {
        format!(
            "cmdline rd.ib=1 {onfail}; source_hook cmdline
            EXIT_CODE=killed EXIT_STATUS=KILL sh \"$lib/ended.sh\"; result; {then}"
        )
    };
    let reason = "ibboot up: no verdict: killed KILL; see dmesg";
    plays(
        "crash, continue",
        &script(
            "",
            "source_hook job; source_hook emergency; (source_hook finished) && echo on",
        ),
        &format!(
            "result: failed continue|{reason}|\nibboot: {reason}\n\
             ibboot:   type \"ibboot check\" to see what failed; after a repair, type\n\
             ibboot:     \"ibboot up\", then \"ibboot check\"; type \"exit\" to continue the boot\non\n"
        ),
    );
    plays(
        "crash, shell",
        &script(
            "rd.ib.onfail=shell",
            "(source_hook finished) || source_hook job; source_hook job; (source_hook finished) && echo on",
        ),
        &format!("result: failed shell|{reason}|\nemergency_shell ibboot: {reason}\non\n"),
    );
}

#[test]
fn a_verdict_is_not_replaced_by_a_late_crash() {
    plays(
        "late crash",
        "cmdline rd.ib=1 rd.ib.onfail=reboot; source_hook cmdline
        echo verified > /run/ibboot/result; EXIT_CODE=killed EXIT_STATUS=KILL source_hook ended; result
        source_hook job; (source_hook finished) && echo on; cat /dev/kmsg",
        "result: verified|\non\n",
    );
}

#[test]
fn a_reboot_tries_the_next_command_if_one_is_missing() {
    let script = |actions: &str| {
        format!(
            "mkdir /run/ibboot; printf 'failed reboot\\nno cable\\n' > /run/ibboot/result
            {actions}; source_hook job; cat /dev/kmsg /proc/sysrq-trigger"
        )
    };
    let reboots = "<3>ibboot: rebooting in 10 s: no cable\n";
    let systemd = "DRACUT_SYSTEMD=1; systemctl() { echo \"systemctl $*\"; }";
    plays(
        "reboot, systemd",
        &script(&format!("{systemd}; reboot() {{ echo no; }}")),
        &format!("systemctl --no-block --force reboot\n{reboots}"),
    );
    plays(
        "reboot, systemd is gone",
        &script("DRACUT_SYSTEMD=1; systemctl() { return 1; }; reboot() { echo \"reboot $*\"; }"),
        &format!("reboot -f -f\n{reboots}"),
    );
    plays(
        "reboot, nothing but the kernel",
        &script("DRACUT_SYSTEMD=''; reboot() { return 127; }"),
        &format!("{reboots}b\n"),
    );
}

#[test]
fn nodes_that_fail_together_do_not_reboot_together() {
    let script = "mkdir -p /run/ibboot /proc/sys/kernel/random; DRACUT_SYSTEMD=''; reboot() { :; }
        printf 'failed reboot\nno cable\n' > /run/ibboot/result; sleep() { echo \"sleep $1\"; }
        for part in 0000 001e 001f ffff; do
            echo \"6fd82c3e-$part-4c4e-8b3a-0123456789ab\" > /proc/sys/kernel/random/uuid
            source_hook job; cat /dev/kmsg
        done";
    for shell in SHELLS {
        let test = format!("the pause before a reboot, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let pauses = [10, 40, 10, 11];
            let expected = pauses.map(|pause| {
                format!("sleep {pause}\nsleep 60\n<3>ibboot: rebooting in {pause} s: no cable\n")
            });
            assert_eq!(found, expected.concat(), "{test}");
        }
    }
}

#[test]
fn no_shell_interprets_the_words_of_a_server() {
    let script = r"mkdir /run/ibboot; echo rd.ib=1 > /run/ibboot/requested
        printf '%s\n' 'failed reboot' 'refuses: \033[2J\n' > /run/ibboot/result
        reboot() { :; }; DRACUT_SYSTEMD=''; source_hook job; cat /dev/kmsg; rm /run/ibboot/result
        : > /dev/kmsg; IBBOOT_ENDED='\033[2J' source_hook ended; cat /dev/kmsg";
    for shell in SHELLS {
        let test = format!("escape sequences, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = r"<3>ibboot: rebooting in 10 s: refuses: \033[2J\n
<3>ibboot: ibboot up: no verdict: \033[2J; the boot continues
";
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn up_that_cannot_start_leaves_its_reason() {
    let reason = "/proc/sys/kernel/osrelease: cannot be read: No such file or directory";
    plays(
        "early error",
        "rm /etc/initrd-release; cmdline rd.ib=1 rd.ib.onfail=reboot; ibboot up 2> /run/stderr; echo \"exit $?\"
        result; grep -c osrelease /run/stderr; ls /run/ibboot",
        &format!("exit 1\nresult: failed reboot|{reason}|\n2\nresult\n"),
    );
    plays(
        "early error, nothing requested",
        "ibboot up 2>&1; echo \"exit $?\"; [ -e /run/ibboot ] || echo none",
        &format!("ibboot: {reason}\nexit 1\nnone\n"),
    );
}

/// dracut's module ifcfg makes a profile of each file that it finds then.
#[test]
fn no_profile_of_an_interface_of_ibboot_is_made_by_dracuts_module_ifcfg() {
    let script = "cd /tmp; echo '# ibboot' > net.ib0.did-setup; cp net.ib0.did-setup net.b8-59-9f-fc-1a-2c.did-setup
        : > net.eth0.did-setup; printf more > net.eth1.did-setup; mkdir net.odd.did-setup; : > net.ib0.up
        source_hook ifcfg; echo net.*; rm -r net.*; source_hook ifcfg; echo \"$? $ibboot_file$ibboot_owner\"";
    for shell in SHELLS {
        if let Some(found) = play_in(shell, &format!("ifcfg, {shell:?}"), script) {
            let expected =
                "net.eth0.did-setup net.eth1.did-setup net.ib0.up net.odd.did-setup\n0 \n";
            assert_eq!(found, expected, "{shell:?}");
        }
    }
}

/// With a full /run only the name of the result can be written.
#[test]
fn an_empty_result_has_the_action_of_onfail() {
    let script = |onfail: &str, then: &str| {
        format!(
            "{ONLINE} cmdline rd.ib=1 {onfail}; source_hook cmdline; : > /run/ibboot/result
            (source_hook finished) || echo held; {then}"
        )
    };
    let reason = "ibboot up: /run/ibboot/result cannot be read";
    for (onfail, then, expected) in [
        ("", "source_hook job", String::new()),
        (
            "rd.ib.onfail=shell",
            "source_hook job; source_hook emergency | head -n 1; (source_hook finished) && echo on",
            format!("held\nemergency_shell ibboot: {reason}\nibboot: {reason}\non\n"),
        ),
        (
            "rd.ib.onfail=reboot",
            "reboot() { echo reboot; }; source_hook job; sed 's/in [0-9]* s/in N s/' /dev/kmsg",
            format!("held\nreboot\n<3>ibboot: rebooting in N s: {reason}\n"),
        ),
    ] {
        plays(
            &format!("empty, {onfail}"),
            &script(onfail, then),
            &expected,
        );
    }
}

/// Without systemd cleanup.sh must find the process that is still running.
#[test]
fn a_hung_up_is_stopped_before_the_real_root() {
    let script = "cmdline rd.ib=1 rd.ib.timeout=40; source_hook cmdline
        ln -s /bin/sleep \"$3/sbin/hung\"
        trap '' TERM; \"$3/sbin/hung\" 60 & hung=$!; trap - TERM; echo \"$hung\" > /run/ibboot/up.pid
        uptime 300.00; source_hook job; uptime 370.00; source_hook job; result
        printf '#!/bin/sh\\n' > \"$3/sbin/nothing\"; chmod +x \"$3/sbin/nothing\"; ln -sf \"$3/sbin/nothing\" \"$3/sbin/ibboot\"
        source_hook cleanup; wait \"$hung\" 2> /dev/null; echo \"stopped: $?\"";
    plays(
        "hung, without systemd",
        script,
        "result: failed continue|ibboot up: no verdict: still running 30 s after its deadline|\nstopped: 137\n",
    );
}
