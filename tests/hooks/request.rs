// SPDX-License-Identifier: MIT OR Apache-2.0
//! Before the verdict: what is requested, the start of `up`, and the files for other programs.

use crate::stage::{ONLINE, SHELLS, play_in, plays};

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
    // With rd.hostonly=0 dracut 059 removes the folder before its hooks.
    let script = "rm -r \"$hookdir/initqueue/finished\"; mkdir -p \"$hookdir/initqueue\"
        for line in rd.ib=1 'rd.ib=1 rd.retry=20' 'rd.ib=1 rd.ib.timeout=40 rd.retry=20 rd.ib.onfail=reboot' \
            'rd.ib=1 rd.ib.timeout=1 rd.ib.timeout=90s rd.ib.onfail=shell' 'rd.ib=1 rd.ib.onfail=bogus rd.retry=0' \
            'rd.ib=1 rd.timeout=7' 'rd.ib=1 rd.ib.onfail=reboot rd.ib.onfail=bogus rd.retry=20 rd.timeout=7' \
            'rd.neednet=1 ip=ib0:dhcp rd.retry=20 rd.ib.timeout=bogus'; do
            cmdline \"$line\"; source_hook cmdline; head -n 2 /run/ibboot/requested | tr '\\n' ' '; echo
        done
        sed \"s|^$hookdir$|hookdir|\" /run/ibboot/hookdir
        cd \"$hookdir/initqueue\"; for hook in 50-ibboot.sh settled/zz-ibboot.sh finished/50-ibboot.sh; do readlink $hook; done | sed \"s|$lib/||\"";
    for shell in SHELLS {
        let test = format!("requested, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = "continue 180 \ncontinue 20 \nreboot 40 \nshell 1 \ncontinue 180 \ncontinue 180 \nreboot 20 \n\
                 continue 20 \nhookdir\njob.sh\nsettled.sh\nfinished.sh\n";
            assert_eq!(found, expected, "{test}");
        }
    }
}

#[test]
fn up_starts_before_the_hooks_if_it_is_requested_or_if_that_is_not_known() {
    let script = "echo 'echo start' > \"$lib/start.sh\"
        for line in rd.ib=1 rd.ib_link=x ip=eth0:dhcp; do
            echo \"$line\"; cmdline \"$line\"; source_hook early; find /run -path '*ibboot*'; rm -rf /run/ibboot
        done
        echo ended before the request is read; cmdline rd.ib=1; source_hook early; sh \"$lib/ended.sh\"
        source_hook cmdline; source_hook zz-ibboot-complete; ls /run/ibboot
        echo unknown; ln -sf /bin/false \"$(command -v ibboot)\"; source_hook early";
    for shell in SHELLS {
        let test = format!("early, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = "rd.ib=1\nstart\n/run/ibboot\nrd.ib_link=x\nstart\n/run/ibboot\nip=eth0:dhcp\n\
                 ended before the request is read\nstart\nstart\ncomplete\nhookdir\nrequested\nunknown\nstart\n";
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
        : > /dev/kmsg; generate 2>&1; sed 's/.*ibboot: //' /dev/kmsg",
        "exit 0\nexit 0\n/run/units/dracut-cmdline.service.d/60-ibboot.conf\n/run/units/sysinit.target.d/50-ibboot.conf\n\
         exit 1\n/run/f/sysinit.target.d/50-ibboot.conf: cannot be written: Not a directory\n\
         exit 64\nibboot-generator: no directory for units\n",
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
        echo a breakpoint; cmdline rd.ib=1 rd.break rd.break=initqueue rd.break=pre-mount; source_hook cmdline; source_hook zz-ibboot-complete
        ls /run/ibboot; source_hook job; ls /run/ibboot; rm -r /run/ibboot
        echo nothing requested; cmdline ip=eth0:dhcp rd.break=initqueue; mkdir /run/ibboot; source_hook cmdline
        source_hook zz-ibboot-complete; ls /run/ibboot; sh \"$lib/ended.sh\"; find /run/ibboot 2> /dev/kmsg";
    for shell in SHELLS {
        let test = format!("late, {shell:?}");
        if let Some(found) = play_in(shell, &test, script) {
            let expected = "late\nsystemctl --no-block start ibboot.service\nearly\ncomplete\nhookdir\nrequested\n\
                 ended before\nsystemctl --no-block start ibboot.service\ncomplete\nhookdir\nrequested\n\
                 a hook failed\nsystemctl --no-block start ibboot.service\ncomplete\nhookdir\nrequested\n\
                 a breakpoint\nsystemctl --no-block start ibboot.service\nhookdir\nrequested\n\
                 systemctl --no-block start ibboot.service\ncomplete\nhookdir\nrequested\n\
                 nothing requested\ncomplete\n";
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
        "cmdline rd.ib=1; ibboot plan --requested --cmdline rd.ib=1; echo \"exit $?\"; find /run -name ibboot
        mkdir /run/elsewhere; ln -s /run/elsewhere /run/ibboot
        ibboot plan --requested 2> /dev/kmsg; echo \"exit $?\"; cat /dev/kmsg; ls /run/elsewhere; rm /run/ibboot
        rm /etc/initrd-release; ibboot plan --requested; echo \"exit $?\"; find /run -name ibboot",
        "exit 0\nexit 1\nibboot: /run/ibboot: cannot be opened: Not a directory\nexit 0\n",
    );
}

#[test]
fn a_failed_question_is_not_taken_for_a_line_without_requests() {
    plays(
        "requested, unknown",
        "cmdline rd.ib=1; mkdir /run/elsewhere; ln -s /run/elsewhere /run/ibboot; source_hook cmdline 2> /dev/null
        cat /run/ibboot/requested; cd \"$hookdir/initqueue\"; ls 50-ibboot.sh finished/50-ibboot.sh",
        "warn ibboot plan --requested failed: the defaults of rd.ib.timeout and rd.ib.onfail apply\n\
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
        source_hook early; source_hook cmdline; source_hook zz-ibboot-complete; source_hook emergency; source_hook cleanup
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
        configuration() { find /run/NetworkManager /run/udev /run/systemd /etc/systemd /run/ibboot/hold /run/ibboot/alone* -type f 2> /dev/null | sort; }
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
         /run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/alone\n/run/ibboot/alone-nm\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\n/run/udev/rules.d/92-ibboot.rules\nagain\n/run/systemd/network/site.network\nagain\n\
         /run/systemd/network/site.network\nhanded over\n/run/ibboot/alone-nm\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\nnetworkd has an interface\n\
         /etc/systemd/network/00-ibboot-bond0.network\n/etc/systemd/network/00-ibboot.network\n\
         /etc/systemd/network/site.network\n/run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/alone-nm\n/run/ibboot/hold\n\
         /run/systemd/network/site.network\n/run/udev/rules.d/92-ibboot.rules\n",
    );
}

#[test]
fn nothing_waits_for_a_network_manager_without_an_interface_to_set_up() {
    plays(
        "NetworkManager waits",
        "profiles=NetworkManager/system-connections; mkdir -p /run/$profiles /etc/$profiles /etc/sysconfig/network-scripts
        generated=/run/$profiles/ib0.nmconnection; site=/etc/$profiles/site.nmconnection; old=/etc/sysconfig/network-scripts
        printf '[user]\norg.freedesktop.NetworkManager.origin=nm-initrd-generator\n' > $generated; : > $old/readme
        reserve() { cmdline rd.neednet=1 $*; source_hook cmdline; ls /run/ibboot/alone-nm 2> /dev/null || echo waits; }
        reserve root=wwinit ifname=ib0:b8:59:9f:fc:1a:2c ip=ib0:dhcp
        reserve ip=ib0:dhcp ip=eth0:dhcp; reserve ip=ib0:dhcp BOOTIF=01-52-54-00-12-34-56
        echo '[connection]' > $site; reserve ip=ib0:dhcp; rm $site
        : > $old/ifcfg-eth0; reserve ip=ib0:dhcp; rm $old/ifcfg-eth0; reserve ip=ib0:dhcp",
        "/run/ibboot/alone-nm\nwaits\nwaits\nwaits\nwaits\n/run/ibboot/alone-nm\n",
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
         /run/NetworkManager/conf.d/90-ibboot.conf\n/run/ibboot/alone\n/run/ibboot/alone-nm\n/run/ibboot/hold\n\
         /run/ibboot/hookdir\n/run/ibboot/requested\n/run/udev/rules.d/92-ibboot.rules\nhooks/initqueue/50-ibboot.sh\n\
         hooks/initqueue/finished/50-ibboot.sh\nhooks/initqueue/settled/zz-ibboot.sh\ntaken back\n/run/ibboot/complete\n/run/ibboot/hookdir\nexit 2\n",
    );
}

#[test]
fn a_failure_of_the_second_run_leaves_the_deadline_and_the_reaction_of_the_first() {
    plays(
        "second run",
        "cmdline rd.ib.onfail=shell rd.ib.timeout=600; source_hook cmdline
        mv /run/ibboot /run/elsewhere; ln -s /run/elsewhere /run/ibboot
        mkdir -p /etc/cmdline.d; echo rd.neednet=1 > /etc/cmdline.d/95-site.conf
        source_hook zz-ibboot-complete 2> /dev/null; cat /run/ibboot/requested; ls /run/ibboot/complete",
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
        source_hook zz-ibboot-complete; cat /run/ibboot/requested; find \"$hookdir\" -name '50-*' | wc -l; ls /run/ibboot/complete",
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
