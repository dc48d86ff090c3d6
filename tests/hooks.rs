// SPDX-License-Identifier: MIT OR Apache-2.0
//! dracut's hooks, sourced by a shell in a mount namespace with its own /proc, /dev and /run.
//! Needs root; without root each test reports that it was skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

/// The functions that dracut offers its hooks, and replacements of the kernel's files. The real
/// /proc is hidden, above all its sysrq-trigger; /tmp is that of the scene, and the real /tmp is at
/// /mnt.
const STAGE: &str = r#"
mount --rbind /tmp /mnt
moved() { case $1 in /tmp/*) echo "/mnt/${1#/tmp/}" ;; *) echo "$1" ;; esac; }
set -- "$(moved "$1")" "$(moved "$2")" "$(moved "$3")"
hooks=$1/dracut-module/50ibboot
hookdir=$3/hooks
mkdir -p "$hookdir/initqueue/finished" "$3/tmp" "$3/proc" "$3/dev" "$3/sbin" "$3/lib"
mount --bind "$3/tmp" /tmp
lib=$3/lib
ln -s "$2" "$3/sbin/ibboot"
for hook in "$hooks"/*.sh; do
    sed "s|/usr/lib/ibboot|$lib|g; s|/usr/sbin/ibboot|$3/sbin/ibboot|g; s|/sbin/netroot |$3/sbin/netroot |g; s|/lib/dracut/hooks|$hookdir|g" "$hook" > "$lib/${hook##*/}"
done
PATH=$PATH:$3/sbin
mount -t tmpfs run /run
mount -t tmpfs etc /etc
: > /etc/initrd-release
: > "$3/dev/null"
mount --bind /dev/null "$3/dev/null"
mount --rbind "$3/dev" /dev
mount -t tmpfs proc /proc
[ ! -e /proc/self ]
: > /proc/sysrq-trigger
: > /dev/kmsg
uptime() { echo "$1 1.00" > /proc/uptime; }
cmdline() { echo "$*" > /proc/cmdline; }
getcmdline() { cat /etc/cmdline.d/*.conf /proc/cmdline 2> /dev/null; }
getarg() { tr ' ' '\n' < /proc/cmdline | sed -n "s/^$1//p" | tail -n 1; }
emergency_shell() { echo "emergency_shell $*"; }
warn() { echo "warn $*"; }
sleep() { :; }
result() { echo "result: $(tr '\n' '|' < /run/ibboot/result)"; }
source_hook() { if [ "$1" = initqueue/online ]; then echo "online $2"; else . "$lib/$1.sh"; fi; }
# A turn of dracut's queue, and the end of what it started.
turn() { source_hook job; wait; (source_hook finished) && echo finished || :; }
cmdline 'root=/dev/vda'
uptime 5.25
set +e
"#;

/// The shells that an initramfs may have.
const SHELLS: &[&[&str]] = &[&["bash"], &["dash"], &["busybox", "ash"], &["mksh"]];

/// The output of `script`; none if the namespace cannot be created.
fn play(test: &str, script: &str) -> Option<String> {
    play_in(&["sh"], test, script)
}

fn play_in(shell: &[&str], test: &str, script: &str) -> Option<String> {
    if !geteuid().is_root() {
        eprintln!("skipped: {test}: root is needed for namespaces");
        return None;
    }
    let scene = tempfile::tempdir().unwrap();
    let run = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .args(shell)
        .arg("-ec")
        .arg(format!("{STAGE}\n{script}"))
        .arg("sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")))
        .arg(env!("CARGO_BIN_EXE_ibboot"))
        .arg(scene.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(run.stderr).unwrap(), "", "{test}");
    Some(String::from_utf8(run.stdout).unwrap())
}

fn plays(test: &str, script: &str, expected: &str) {
    if let Some(output) = play(test, script) {
        assert_eq!(output, expected);
    }
}

#[test]
fn nothing_is_left_without_a_request() {
    plays(
        "nothing requested",
        "source_hook cmdline; source_hook zz-ibboot-complete; source_hook emergency; source_hook cleanup
        source_hook ended; find /run \"$hookdir\" -type f -o -type l",
        "",
    );
    plays(
        "the directory of the unit",
        "mkdir /run/ibboot; source_hook cleanup; [ -e /run/ibboot ] || echo none",
        "none\n",
    );
}

#[test]
fn the_hooks_know_the_action_if_up_fails() {
    let script = "for line in rd.ib=1 'rd.ib=1 rd.retry=20' 'rd.ib=1 rd.ib.timeout=40 rd.retry=20 rd.ib.onfail=reboot' \
            'rd.ib=1 rd.ib.timeout=1 rd.ib.timeout=90s rd.ib.onfail=shell' 'rd.ib=1 rd.ib.onfail=bogus rd.retry=0' \
            'rd.ib=1 rd.timeout=7' 'rd.ib=1 rd.ib.onfail=reboot rd.ib.onfail=bogus rd.retry=20 rd.timeout=7' \
            'rd.neednet=1 ip=ib0:dhcp rd.retry=20 rd.ib.timeout=bogus'; do
            cmdline \"$line\"; source_hook cmdline; head -n 2 /run/ibboot/asked | tr '\\n' ' '; echo
        done
        sed \"s|^$hookdir$|hookdir|\" /run/ibboot/hookdir
        cd \"$hookdir/initqueue\"; for hook in 50-ibboot.sh finished/50-ibboot.sh; do readlink $hook; done | sed \"s|$lib/||\"";
    for shell in SHELLS {
        let test = format!("requested, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = "continue 180 \ncontinue 20 \nreboot 40 \nshell 1 \ncontinue 180 \ncontinue 180 \nreboot 20 \n\
                 continue 20 \nhookdir\njob.sh\nfinished.sh\n";
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn up_starts_before_the_hooks_if_it_is_requested_or_if_that_is_not_known() {
    let script = "echo 'echo start' > \"$lib/start.sh\"
        for line in rd.ib=1 rd.ib_link=x ip=eth0:dhcp; do
            echo \"$line\"; cmdline \"$line\"; source_hook early; ls /run/ibboot 2> /dev/kmsg || :; rm -rf /run/ibboot
        done
        echo unknown; ln -sf /bin/false \"$(command -v ibboot)\"; source_hook early";
    for shell in SHELLS {
        let test = format!("early, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected =
                "rd.ib=1\nstart\nasked\nrd.ib_link=x\nstart\nasked\nip=eth0:dhcp\nunknown\nstart\n";
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn the_program_is_the_generator_of_systemd_under_that_name() {
    plays(
        "generator",
        "ln -s \"$(command -v ibboot)\" /run/ibboot-generator; mkdir /run/units
        generate() { /run/ibboot-generator \"$@\"; echo \"exit $?\"; }
        generate /run/units /run/early /run/late; find /run -name '*.conf'
        cmdline rd.ib=1; generate /run/units /run/early /run/late; find /run -name '*.conf' | sort
        : > /run/f; generate /run/f /run/early /run/late; sed 's/.*ibboot: //' /dev/kmsg
        generate 2>&1",
        "exit 0\nexit 0\n/run/units/dracut-cmdline.service.d/60-ibboot.conf\n/run/units/sysinit.target.d/50-ibboot.conf\n\
         exit 1\n/run/f/sysinit.target.d/50-ibboot.conf: cannot be written: Not a directory\n\
         ibboot: ibboot-generator: no directory for units\nexit 64\n",
    );
}

#[test]
fn dracut_before_060_gets_the_hooks_of_cmdline_and_cleanup_when_its_first_stage_starts() {
    plays(
        "link",
        "mkdir \"$hookdir/cmdline\" \"$hookdir/cleanup\"; source_hook link; source_hook link
        cd \"$hookdir\"; for link in cmdline/* cleanup/*; do echo \"$link $(basename \"$(readlink -e \"$link\")\")\"; done
        cat /dev/kmsg; rm -r cleanup; source_hook link 2> /dev/null; sed \"s|$hookdir|HOOKS|\" /dev/kmsg",
        "cmdline/93-cmdline.sh cmdline.sh\ncmdline/99-zz-ibboot-complete.sh zz-ibboot-complete.sh\n\
         cleanup/05-cleanup.sh cleanup.sh\n\
         <3>ibboot: the hooks of ibboot cannot be added to HOOKS: this boot does not wait for the links\n",
    );
}

#[test]
fn up_that_is_not_running_starts_after_the_last_cmdline_hook() {
    let script = "systemctl() { echo \"systemctl $*\"; }; DRACUT_SYSTEMD=1
        echo late; cmdline rd.ib=1; source_hook cmdline; source_hook zz-ibboot-complete; rm -r /run/ibboot
        echo early; mkdir /run/ibboot; source_hook cmdline; source_hook zz-ibboot-complete; ls /run/ibboot; rm -r /run/ibboot
        echo ended before; mkdir /run/ibboot; : > /run/ibboot/result; sh \"$lib/ended.sh\"; source_hook cmdline
        source_hook zz-ibboot-complete; ls /run/ibboot; rm -r /run/ibboot
        echo a hook failed; source_hook cmdline; source_hook job; source_hook job; ls /run/ibboot; rm -r /run/ibboot
        echo nothing requested; cmdline ip=eth0:dhcp; mkdir /run/ibboot; source_hook cmdline
        source_hook zz-ibboot-complete; ls /run/ibboot; sh \"$lib/ended.sh\"; find /run/ibboot 2> /dev/kmsg";
    for shell in SHELLS {
        let test = format!("late, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = "late\nsystemctl --no-block start ibboot.service\nearly\nasked\ncomplete\nhookdir\n\
                 ended before\nsystemctl --no-block start ibboot.service\nasked\ncomplete\nhookdir\n\
                 a hook failed\nsystemctl --no-block start ibboot.service\nasked\ncomplete\nhookdir\nnothing requested\ncomplete\n";
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn up_waits_for_the_last_hook_and_reads_the_command_line_again() {
    plays(
        "early",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        ibboot up --early & up=$!
        while [ ! -d /run/ibboot ]; do command sleep 0.05; done
        mkdir /etc/cmdline.d; echo rd.ib.link=x:rxe:eth0 rd.ib.timeout=1 rd.ib.onfail=reboot > /etc/cmdline.d/20-hook.conf
        source_hook cmdline; source_hook zz-ibboot-complete
        wait $up; echo \"exit $?\"; result | cut -d : -f 1-3",
        "exit 1\nresult: failed reboot|rdma_rxe: kernel module is not loaded\n",
    );
}

#[test]
fn the_hooks_files_are_written_only_in_an_initramfs_and_through_no_link() {
    plays(
        "requested, elsewhere",
        "cmdline rd.ib=1; ibboot plan --asked --cmdline rd.ib=1; echo \"exit $?\"; find /run -name ibboot
        mkdir /run/elsewhere; ln -s /run/elsewhere /run/ibboot
        ibboot plan --asked 2> /dev/kmsg; echo \"exit $?\"; cat /dev/kmsg; ls /run/elsewhere; rm /run/ibboot
        rm /etc/initrd-release; ibboot plan --asked; echo \"exit $?\"; find /run -name ibboot",
        "exit 0\nexit 1\nibboot: /run/ibboot: cannot be opened: Not a directory\nexit 0\n",
    );
}

#[test]
fn a_failed_question_is_not_taken_for_a_line_without_requests() {
    plays(
        "requested, unknown",
        "cmdline rd.ib=1; mkdir /run/elsewhere; ln -s /run/elsewhere /run/ibboot; source_hook cmdline 2> /dev/null
        cat /run/ibboot/asked; cd \"$hookdir/initqueue\"; ls 50-ibboot.sh finished/50-ibboot.sh",
        "warn ibboot plan --asked failed: the defaults of rd.ib.timeout and rd.ib.onfail apply\n\
         continue\n180\nauto\n50-ibboot.sh\nfinished/50-ibboot.sh\n",
    );
}

#[test]
fn a_hook_that_exits_ends_only_itself() {
    let script = format!(
        "{ONLINE} source_hook() {{ if [ \"$1\" = initqueue/online ]; then echo \"online $2\"; exit 1; else . \"$lib/$1.sh\"; fi; }}
        netroot=iscsi:10.0.0.2::::iqn; printf 'online ib0\nonline ib1\n' > /run/ibboot/interfaces; turn"
    );
    plays(
        "a hook that exits",
        &script,
        "online ib0\nnetroot ib0\nonline ib1\nnetroot ib1\nfinished\n",
    );
}

#[test]
fn nothing_happens_in_a_kernel_that_saves_a_dump() {
    plays(
        "dump",
        ": > /proc/vmcore; cmdline ip=10.0.0.1:::255.255.255.0::ib0:none rd.ib.onfail=reboot
        source_hook cmdline; source_hook zz-ibboot-complete; source_hook emergency; source_hook cleanup
        source_hook ended; ibboot up --reserve; echo \"exit $?\"; find /run \"$hookdir\" -type f -o -type l; cat /dev/kmsg",
        "exit 2\n",
    );
}

#[test]
fn a_kernel_that_saves_a_dump_continues_without_the_link() {
    plays(
        "dump over a link",
        ": > /proc/vmcore
        for onfail in reboot shell continue; do
            cmdline rd.ib=1 rd.ib.kdump=1 rd.ib.onfail=$onfail; source_hook cmdline
            EXIT_CODE=killed EXIT_STATUS=KILL sh \"$lib/ended.sh\"; result; rm /run/ibboot/result
            ibboot up 2> /run/stderr; result; rm -r /run/ibboot
        done",
        &"result: failed continue|ibboot up: no verdict: killed KILL; see dmesg|\n\
          result: failed continue|/proc/sys/kernel/osrelease: cannot be read: No such file or directory|\n"
            .repeat(3),
    );
}

#[test]
fn other_network_programs_are_configured_here_and_for_the_real_root() {
    plays(
        "claim",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        configuration() { find /run/NetworkManager /run/systemd /etc/systemd -type f 2> /dev/null | sort; }
        cmdline rd.ib.link=rxe0:rxe:eth0; source_hook cmdline; [ ! -e /run/NetworkManager ] || echo claimed
        cmdline ip=10.0.0.1:::255.255.255.0::ib0:none; source_hook cmdline; configuration
        cd /run/NetworkManager/conf.d; tail -n 2 90-ibboot.conf; stat -c %a . 90-ibboot.conf
        mkdir /run/NetworkManager/system-connections; cd /run/NetworkManager/system-connections
        echo type=infiniband > site.nmconnection
        source_hook cleanup; configuration",
        "/etc/systemd/network/00-ibboot.network\n/run/NetworkManager/conf.d/90-ibboot.conf\n\
         match-device=type:infiniband\nmanaged=0\n755\n644\n\
         /run/NetworkManager/system-connections/site.nmconnection\n",
    );
}

#[test]
fn a_later_hook_may_take_the_request_of_an_earlier_one_back() {
    plays(
        "claim, twice",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        configuration() { find /run/NetworkManager /run/udev /run/systemd /etc/systemd /run/ibboot/hold /run/ibboot/alone -type f 2> /dev/null | sort; }
        claim='root=nfs:10.0.0.1:/x bond=bond0:ib0,ib1 ip=10.0.0.5:::24::bond0:none'
        mkdir -p /run/systemd/network; generated=/run/systemd/network/70-ib0.network
        echo '# Automatically generated by systemd-network-generator' > $generated
        cmdline $claim; source_hook cmdline; rm $generated
        echo '[Match]' > /run/systemd/network/site.network; configuration
        for line in 'root=nfs:10.0.0.1:/x ip=dhcp rd.ib.mode=connected rd.neednet=1' rd.ib.link=rxe0:rxe:eth0; do
            echo again; cmdline $line; source_hook cmdline; configuration
        done
        echo handed over; cmdline $claim; source_hook cmdline; cmdline rd.ib=1; source_hook cleanup; configuration
        echo networkd has an interface; echo '[Match]' > /etc/systemd/network/site.network
        cmdline $claim; source_hook cmdline; configuration",
        "/etc/systemd/network/00-ibboot-bond0.network\n/etc/systemd/network/00-ibboot.network\n\
         /run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/alone\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\n/run/udev/rules.d/92-ibboot.rules\nagain\n/run/systemd/network/site.network\nagain\n\
         /run/systemd/network/site.network\nhanded over\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\nnetworkd has an interface\n\
         /etc/systemd/network/00-ibboot-bond0.network\n/etc/systemd/network/00-ibboot.network\n\
         /etc/systemd/network/site.network\n/run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\n/run/udev/rules.d/92-ibboot.rules\n",
    );
}

#[test]
fn the_last_hook_takes_back_what_nothing_requests_any_more() {
    plays(
        "taken back",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        files() { find /run /etc \"$hookdir\" ! -name initrd-release ! -name '*-site.conf' -type f -o -type l | sed \"s|^$hookdir|hooks|\" | sort; }
        cmdline root=nfs:10.0.0.1:/x rd.iscsi.transport=iser ip=10.0.0.5:::24::ib0:none; source_hook cmdline; files
        mkdir -p /etc/cmdline.d; echo rd.ib=0 > /etc/cmdline.d/95-site.conf
        source_hook zz-ibboot-complete; echo taken back; files
        ibboot up --early; echo \"exit $?\"; source_hook ended; source_hook cleanup; files; cat /dev/kmsg",
        "/etc/cmdline.d/93-ibboot.conf\n/etc/systemd/network/00-ibboot.network\n\
         /run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/alone\n/run/ibboot/asked\n/run/ibboot/hold\n\
         /run/ibboot/hookdir\n/run/udev/rules.d/92-ibboot.rules\nhooks/initqueue/50-ibboot.sh\n\
         hooks/initqueue/finished/50-ibboot.sh\ntaken back\n/run/ibboot/complete\n/run/ibboot/hookdir\nexit 2\n",
    );
}

#[test]
fn a_failure_of_the_second_run_leaves_the_deadline_and_the_reaction_of_the_first() {
    plays(
        "second run",
        "cmdline rd.ib.onfail=shell rd.ib.timeout=600; source_hook cmdline
        mv /run/ibboot /run/elsewhere; ln -s /run/elsewhere /run/ibboot
        mkdir -p /etc/cmdline.d; echo rd.neednet=1 > /etc/cmdline.d/95-site.conf
        source_hook zz-ibboot-complete 2> /dev/null; cat /run/ibboot/asked; ls /run/ibboot/complete",
        "shell\n600\nauto\n/run/ibboot/complete\n",
    );
}

#[test]
fn the_last_hook_requests_what_a_hook_after_ours_has_added() {
    plays(
        "added later",
        "DRACUT_SYSTEMD=1; systemctl() { echo \"systemctl $*\"; }
        source_hook cmdline; ls -d /run/ibboot 2> /dev/null; mkdir -p /etc/cmdline.d
        echo rd.ib=1 rd.ib.handover=nm rd.ib.onfail=shell > /etc/cmdline.d/95-site.conf
        source_hook zz-ibboot-complete; cat /run/ibboot/asked; find \"$hookdir\" -name '50-*' | wc -l; ls /run/ibboot/complete",
        "systemctl --no-block start ibboot.service\nshell\n180\nnm\n2\n/run/ibboot/complete\n",
    );
}

#[test]
fn the_network_manager_of_the_initramfs_ends_before_its_files_are_written() {
    plays(
        "cleanup, NetworkManager",
        "mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease
        DRACUT_SYSTEMD=1; systemctl() { echo \"systemctl $*\"; }
        cmdline rd.ib=1 rd.ib.handover=nm; source_hook cmdline; source_hook cleanup",
        "systemctl stop ibboot.service\nsystemctl reset-failed ibboot.service\n\
         systemctl --no-block stop ibboot-loader@*.service\n\
         systemctl stop nm-initrd.service NetworkManager-initrd.service\n",
    );
}

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
         result: failed continue|ibboot up: no verdict: still running 30 s after its deadline; see dmesg|\n\
         <3>ibboot: ibboot up: no verdict: still running 30 s after its deadline; see dmesg\n",
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
        cat /dev/kmsg; rm /run/ibboot/shell-left /dev/kmsg; mkdir -p /proc/self/fd
        shown ActiveState=inactive LoadState=bad-setting; ls /dev";
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
                 <3>ibboot: ibboot up: no verdict: {failed}\n\
                 warn ibboot: this kernel has no /dev/kmsg: {wrong}\n\
                 result: failed shell|ibboot up: no verdict: {wrong}|\nnull\n",
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
             ibboot:   type \"ibboot check --all\" for all checks, \"exit\" to continue the boot\non\n"
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

/// Interfaces that are up, and a `/sbin/netroot` that prints its arguments.
const ONLINE: &str = r#"
mkdir /run/ibboot; echo verified > /run/ibboot/result
NEWROOT=$3/sysroot; mkdir "$NEWROOT"
cat > "$3/sbin/netroot" <<'END'
echo "netroot $*"
END
chmod +x "$3/sbin/netroot"
"#;

#[test]
fn dracut_continues_once_over_each_verified_interface() {
    let script = format!(
        "{ONLINE} netroot=iscsi:10.0.0.2::::iqn
        printf 'online ib1\nonline ib0\noffline ib2\n' > /run/ibboot/interfaces
        : > \"$hookdir/initqueue/finished/wait-ib0.sh\"; : > \"$hookdir/initqueue/finished/wait-ib2.sh\"
        (source_hook finished) || echo not finished
        turn; turn; uptime 100.00; turn
        echo 'online ib2' >> /run/ibboot/interfaces; (source_hook finished) || echo not finished
        turn; ls \"$hookdir/initqueue/finished\"; cat /run/ibboot/netroot /dev/kmsg"
    );
    plays(
        "online",
        &script,
        "not finished\nonline ib1\nnetroot ib1\nonline ib0\nnetroot ib0\nfinished\nfinished\nfinished\n\
         not finished\nonline ib2\nnetroot ib2\nfinished\nwait-ib0.sh\n\
         ended 100 ib2: iscsi:10.0.0.2::::iqn\n",
    );
}

/// `setup_net` of dracut's net-lib.sh leaves the name servers of one interface.
#[test]
fn name_servers_survive_the_set_up_of_another_interface() {
    let script = format!(
        "{ONLINE}
        printf 'online ib0\nonline ib1\noffline ib2\n' > /run/ibboot/interfaces
        printf 'search a.example\nnameserver 10.0.0.53\n' > /tmp/net.ib0.resolv.conf
        echo nameserver fd00::53 > /tmp/net.ib1.resolv.conf
        echo nameserver 10.9.9.9 > /tmp/net.ib2.resolv.conf
        echo nameserver 10.1.0.53 > /etc/resolv.conf
        turn; cat /etc/resolv.conf; echo nameserver 10.1.0.53 > /etc/resolv.conf
        (source_hook finished) && cat /etc/resolv.conf"
    );
    let servers =
        "nameserver 10.1.0.53\nsearch a.example\nnameserver 10.0.0.53\nnameserver fd00::53\n";
    plays(
        "name servers",
        &script,
        &format!("online ib0\nnetroot ib0\nonline ib1\nnetroot ib1\nfinished\n{servers}{servers}"),
    );
}

#[test]
fn a_mount_that_failed_is_tried_again_until_it_succeeds() {
    let script = format!(
        "{ONLINE} netroot='nfs4:10.0.0.2:/a\\033b'; netroot=$(printf \"$netroot\")
        echo 'online ib0' > /run/ibboot/interfaces
        turn; source_hook emergency; uptime 9.99; turn; uptime 10.00; turn
        mkdir \"$NEWROOT/proc\"; uptime 20.00; turn; source_hook emergency; cat /dev/kmsg"
    );
    plays(
        "again",
        &script,
        "online ib0\nnetroot ib0\nfinished\nibboot: no root file system over ib0: nfs4:10.0.0.2:/a?b\n\
         finished\nnetroot ib0\nfinished\nfinished\n\
         <3>ibboot: ib0: nfs4:10.0.0.2:/a?b: not mounted, trying again\n",
    );
}

#[test]
fn a_root_of_a_dhcp_server_is_tried_again_like_one_of_the_command_line() {
    let script = format!(
        "{ONLINE} netroot=dhcp
        echo ib0 > /tmp/net.bootdev
        echo 'online ib0' > /run/ibboot/interfaces
        for path in /a 10.0.0.2:/a nfs4:10.0.0.2:/a iscsi:10.0.0.2::::iqn ''; do
            echo \"new_root_path='$path'\" > /tmp/dhclient.ib0.dhcpopts
            rm -f /run/ibboot/netroot /run/ibboot/online-ib0; uptime 5.00; turn; uptime 10.00; turn; source_hook emergency
        done; cat /dev/kmsg"
    );
    let twice = "online ib0\nnetroot ib0\nfinished\nnetroot ib0\nfinished\nibboot: no root file system over ib0: ";
    let once =
        "online ib0\nnetroot ib0\nfinished\nfinished\nibboot: no root file system over ib0: ";
    let again = |root: &str| format!("<3>ibboot: ib0: {root}: not mounted, trying again\n");
    let roots = ["nfs:/a", "nfs:10.0.0.2:/a", "nfs4:10.0.0.2:/a"];
    let tried: Vec<String> = roots
        .iter()
        .map(|root| format!("{twice}{root}\n"))
        .collect();
    plays(
        "root=dhcp",
        &script,
        &format!(
            "{}{once}iscsi:10.0.0.2::::iqn\n{once}dhcp\n{}",
            tried.concat(),
            // The replacement of the kernel's log keeps only the last line.
            again("nfs4:10.0.0.2:/a")
        ),
    );
}

/// /run/ibboot/netroot exists after the initramfs, and the emergency shell and the kernel log
/// quote the file.
#[test]
fn the_password_of_a_root_is_not_shown() {
    let script = format!(
        "{ONLINE} echo 'online ib0' > /run/ibboot/interfaces
        tried() {{
            netroot=$1; rm -f /run/ibboot/netroot /run/ibboot/online-ib0; uptime 5.00; turn; uptime 10.00; turn
            source_hook emergency; cat /run/ibboot/netroot
        }}
        shown() {{ tried \"$1\" | grep -Ev '^(online|netroot|finished)'; cat /dev/kmsg; : > /dev/kmsg; }}
        shown iscsi:user:S3CR3T@10.0.0.2::::iqn
        shown iscsi:user:S3C@RET:in:S3CR3T@10.0.0.2::::iqn
        shown S3CR3T@10.0.0.2
        shown cifs://user:S3CR3T@10.0.0.2/share
        shown 'livenet:https://S3CR3T@10.0.0.2/r.img?token=S3CR3T'
        shown 'livenet:https://10.0.0.2/r.img#S3CR3T'
        shown 'nfs4:10.0.0.2:/a@b?c'"
    );
    let shown = |root: &str, seconds: u32| {
        format!("ibboot: no root file system over ib0: {root}\nended {seconds} ib0: {root}\n")
    };
    let again = |root: &str| {
        let line = format!("<3>ibboot: ib0: {root}: not mounted, trying again\n");
        shown(root, 10) + &line
    };
    plays(
        "password",
        &script,
        &[
            shown("iscsi:****@10.0.0.2::::iqn", 5),
            shown("iscsi:****@10.0.0.2::::iqn", 5),
            shown("****@10.0.0.2", 5),
            again("cifs://****@10.0.0.2/share"),
            shown("livenet:https://****@10.0.0.2/r.img?****", 5),
            shown("livenet:https://10.0.0.2/r.img#****", 5),
            again("nfs4:10.0.0.2:/a@b?c"),
        ]
        .concat(),
    );
}

/// network-legacy calls netroot as soon as its interface has an address, inside the queue.
#[test]
fn a_mount_of_another_network_module_waits_for_the_verdict() {
    let script = format!(
        "{ONLINE} mkdir -p /proc/sys/kernel; echo 6.1.0 > /proc/sys/kernel/osrelease; rm -r /run/ibboot
        held_after() {{ cmdline \"$*\"; source_hook cmdline; [ ! -e /run/ibboot/hold ] || echo held; rm -rf /run/ibboot; }}
        held_after rd.ib.link=rxe0:rxe:eth0 root=nfs:10.0.0.2:/
        held_after rd.ib.link=rxe0:rxe:eth0 root=nfs:10.0.0.2:/:rdma
        held_after ip=10.0.0.1:::24::ib0:none root=nfs:10.0.0.2:/
        held_after ip=ib0:dhcp root=dhcp
        held_after ip=eth0:dhcp ip=10.0.0.1:::24::ib0:none root=dhcp
        rm -rf /run/NetworkManager; : > /run/NetworkManager; held_after ip=ib0:dhcp root=dhcp 2> /run/stderr; grep -c NetworkManager /run/stderr
        netroot='nfs:10.0.0.2:/:rdma' handler=nfsroot netif=eth0
        begins() {{ (source_hook hold; echo \"netroot $netif\"); }}
        mkdir /run/ibboot; begins
        : > /run/ibboot/hold; begins; (handler='' && begins); (IBBOOT_TURN=1 && begins); netif=ib0; begins
        echo verified > /run/ibboot/result; echo 'online ib0' > /run/ibboot/interfaces
        turn; uptime 9.00; turn; uptime 10.30; turn"
    );
    plays(
        "hold",
        &script,
        "held\nheld\nheld\nheld\n1\nnetroot eth0\nnetroot eth0\nnetroot eth0\n\
         online ib0\nnetroot ib0\nnetroot eth0\nfinished\nfinished\nnetroot ib0\nnetroot eth0\nfinished\n",
    );
}

/// network-legacy treats the first `ip=` as the boot device and passes that name to netroot for
/// every interface.
#[test]
fn a_mount_held_for_a_dead_boot_device_follows_nevertheless() {
    let script = format!(
        "{ONLINE} printf 'failed continue\nno cable\n' > /run/ibboot/result; netroot=iscsi:10.0.0.2::::iqn
        echo 'offline ib0' > /run/ibboot/interfaces; : > /run/ibboot/held-ib0
        turn; uptime 20.00; turn; ls /run/ibboot
        echo 'online ib0' > /run/ibboot/interfaces; turn; uptime 40.00; turn"
    );
    plays(
        "dead boot device",
        &script,
        "netroot ib0\nfinished\nfinished\nheld-ib0\ninterfaces\nnetroot\nresult\nturn-ib0\n\
         online ib0\nnetroot ib0\nfinished\nfinished\n",
    );
}

/// dracut tries only once, before any interface is up (95nvmf).
#[test]
fn nvme_servers_are_connected_when_a_link_is_verified() {
    let script = format!(
        "{ONLINE} mount -t tmpfs etc /etc; mkdir /etc/nvme; echo --transport=rdma > /etc/nvme/discovery.conf
        nvme() {{ echo \"nvme $*\"; }}
        echo 'online ib0' > /run/ibboot/interfaces
        turn; uptime 9.00; turn; uptime 20.00; turn; cat /dev/kmsg
        printf '# no newline:\n--transport=tcp' > /etc/nvme/discovery.conf; rm /run/ibboot/netroot /run/ibboot/online-ib0; ibboot turn | tail -n 1"
    );
    plays(
        "nvme",
        &script,
        "online ib0\nnetroot ib0\nnvme connect-all\nfinished\nfinished\nnetroot ib0\nnvme connect-all\nfinished\n\
         <3>ibboot: ib0: not mounted, trying again\nnvme\n",
    );
}

/// Debian's nvme-cli has such a file, and dracut copies it into every image.
#[test]
fn a_file_of_comments_names_no_nvme_server() {
    let script = format!(
        "{ONLINE} mount -t tmpfs etc /etc; mkdir /etc/nvme
        printf '# Example:\n\n#--transport=tcp\n' > /etc/nvme/discovery.conf
        nvme() {{ echo \"nvme $*\"; }}
        echo 'online ib0' > /run/ibboot/interfaces
        turn; uptime 9.00; turn; uptime 20.00; turn; cat /dev/kmsg"
    );
    plays(
        "nvme comments",
        &script,
        "online ib0\nnetroot ib0\nfinished\nfinished\nfinished\n",
    );
}

#[test]
fn open_iscsi_gets_its_own_argument_for_iser() {
    plays(
        "iser",
        "for line in rd.ib=1 'rd.ib=1 rd.iscsi.transport=qedi' 'rd.iscsi.transport=iser'; do
            cmdline \"$line\"; source_hook cmdline; [ ! -e /etc/cmdline.d ] || echo \"$line: too early\"
        done
        cmdline rd.ib=1 rd.iscsi.transport=iser; source_hook cmdline; cat /etc/cmdline.d/*.conf",
        "rd.iscsi.param=iface.transport_name=iser\n",
    );
}

#[test]
fn a_mount_that_never_returns_does_not_hold_the_queue() {
    let script = format!(
        "{ONLINE} netroot=nfs4:10.0.0.2:/
        printf 'echo begun; read -r _ < %s/fifo\necho ended\n' \"$3\" > \"$3/sbin/netroot\"; mkfifo \"$3/fifo\"
        echo 'online ib0' > /run/ibboot/interfaces
        for now in 5.00 34.99 35.00 36.00 65.00; do
            : > /dev/kmsg; uptime $now; source_hook job; (source_hook finished) || echo \"$now: held\"; cat /dev/kmsg
        done
        source_hook emergency; echo > \"$3/fifo\"; wait; (source_hook finished) && echo finished"
    );
    let held = |output: &str| {
        let mut lines: Vec<&str> = output.lines().collect();
        // The child runs in parallel with the queue: the order of its output is not fixed.
        lines.retain(|line| !["online ib0", "begun"].contains(line));
        lines.join("\n")
    };
    let mount = "ib0: nfs4:10.0.0.2:/";
    if let Some(output) = play("hangs", &script) {
        assert_eq!(
            held(&output),
            format!(
                "5.00: held\n34.99: held\n35.00: held\n\
                 <3>ibboot: {mount}: still not mounted, and the mount has not returned for 30 s\n\
                 36.00: held\n65.00: held\n\
                 <3>ibboot: {mount}: still not mounted, and the mount has not returned for 60 s\n\
                 ibboot: no root file system over {mount}, and the mount has not returned\n\
                 ended\nfinished"
            )
        );
    }
}

#[test]
fn a_slow_download_stops_the_clock_of_dracut() {
    let script = format!(
        "{ONLINE} netroot=livenet:http://10.0.0.2/a.img
        printf 'read -r _ < %s/fifo\n' \"$3\" > \"$3/sbin/netroot\"; mkfifo \"$3/fifo\"
        echo 'online ib0' > /run/ibboot/interfaces
        for now in 5.00 6.00 35.00; do
            main_loop=7; : > /dev/kmsg; uptime $now; source_hook job; echo \"$now: $main_loop\"; cat /dev/kmsg
        done
        echo > \"$3/fifo\"; wait; main_loop=7; source_hook job; echo \"ended: $main_loop\""
    );
    if let Some(output) = play("download", &script) {
        // The child runs in parallel with the queue: the order of its output is not fixed.
        let lines = output.lines().filter(|line| *line != "online ib0");
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "5.00: 7",
                "6.00: 0",
                "35.00: 0",
                "<3>ibboot: ib0: livenet:http://10.0.0.2/a.img: the boot waits for dracut, which has worked on \
                 this for 30 s",
                "ended: 7"
            ]
        );
    }
}

/// The parts of module-setup.sh that select files, with dracut's functions replaced by echo.
#[test]
fn site_settings_go_by_normal_driver_names() {
    plays(
        "site settings",
        "mount -t tmpfs etc /etc; mkdir -p /etc/modprobe.d; dracutsysrootdir=''
        site() { echo \"$2\" > \"/etc/modprobe.d/$1.conf\"; }
        site dashed 'options ib-ipoib recv_queue_size=1024'; site added 'options my-hca debug=1'
        site listed 'softdep odd_hca pre: x'; site irdma 'options irdma limits_sel=5'
        site class 'options drivers x=1'; site any 'options e1000e x=1'; site plus 'options xx y=1'
        cat > /run/site.sh <<'END'
        . \"$1/module-setup.sh\"
        inst_simple() { echo \"${1#/etc/modprobe.d/}\"; }
        shopt -s nullglob
        ibboot_drivers='ib-ipoib =drivers/infiniband x+ odd-hca' add_drivers=' my_hca .* '
        install_site_settings | grep -v / | sort
END
        bash /run/site.sh \"$hooks\"",
        "added.conf\ndashed.conf\nirdma.conf\nlisted.conf\n",
    );
}
