// SPDX-License-Identifier: MIT OR Apache-2.0
//! The turns of dracut's queue after the verdict: interfaces, mounts and downloads.

use crate::stage::{ONLINE, play, plays};

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
         ibboot:   read dmesg and the log of the server; mount the root file system on\n\
         ibboot:     /sysroot by hand, then type \"exit\"\n\
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
            rm -f /run/ibboot/netroot /run/ibboot/online-ib0; uptime 5.00; turn; uptime 10.00; turn
            source_hook emergency | grep -v '^ibboot:   '
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
        shown() {{ tried \"$1\" | grep -Ev '^(online|netroot|finished|ibboot:   )'; cat /dev/kmsg; : > /dev/kmsg; }}
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
            shown("iscsi:****@****@10.0.0.2::::iqn", 5),
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
        mkdir /run/ibboot; : > /run/ibboot/settled; begins
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
        "netroot ib0\nfinished\nfinished\nheld-ib0\ninterfaces\nnetroot\nresult\nsettled\nturn-ib0\n\
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
        "online ib0\nnetroot ib0\nnvme connect-all\nfinished\nfinished\nnvme connect-all\nfinished\n\
         <3>ibboot: ib0: not mounted, trying again\nnvme\n",
    );
}

/// nvme-cli 2.5 and later also connects to the servers of the firmware, even with rd.nvmf.nonbft.
#[test]
fn only_the_nvme_servers_of_the_files_are_connected_and_none_with_rd_nonvmf() {
    let script = format!(
        "{ONLINE} mkdir /etc/nvme; echo --transport=rdma > /etc/nvme/discovery.conf
        nvme() {{ case $2 in --help) echo '[ --no-nbft ]  --- x' >&2 ;; *) echo \"nvme $*\" ;; esac; }}
        echo 'online ib0' > /run/ibboot/interfaces
        turn; rm /run/ibboot/netroot /run/ibboot/online-ib0; cmdline rd.nonvmf; turn"
    );
    plays(
        "nbft",
        &script,
        "online ib0\nnetroot ib0\nnvme connect-all --no-nbft\nfinished\nonline ib0\nnetroot ib0\nfinished\n",
    );
}

#[test]
fn an_nvme_server_that_does_not_answer_does_not_stop_the_clock_of_dracut() {
    let script = format!(
        "{ONLINE} mount -t tmpfs etc /etc; mkdir /etc/nvme; echo --transport=rdma > /etc/nvme/discovery.conf
        fifo=$3/fifo; mkfifo \"$fifo\"; nvme() {{ [ \"$2\" = --help ] || read -r _ < \"$fifo\"; }}
        echo 'online ib0' > /run/ibboot/interfaces
        for now in 5.00 6.00; do main_loop=7; uptime $now; source_hook job; echo \"$now: $main_loop\"; done
        echo > \"$3/fifo\"; wait
        for now in 10.00 11.00 12.00 41.00; do
            main_loop=7; : > /dev/kmsg; uptime $now; source_hook job
            (source_hook finished) && echo \"$now: $main_loop\"; cat /dev/kmsg
        done
        source_hook emergency | head -n 1; echo > \"$3/fifo\"; wait; cat /run/ibboot/netroot"
    );
    if let Some(output) = play("nvme hangs", &script) {
        // The child runs in parallel with the queue: the order of its output is not fixed.
        let lines = output.lines();
        let lines = lines.filter(|line| !["online ib0", "netroot ib0"].contains(line));
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "5.00: 7",
                "6.00: 0",
                "10.00: 7",
                "11.00: 7",
                "<3>ibboot: ib0: not mounted, trying again",
                "12.00: 7",
                "41.00: 7",
                "<3>ibboot: ib0: still not mounted, and nvme connect-all has not returned for 30 s",
                "ibboot: no root file system over ib0, and nvme connect-all has not returned",
                "ended 41 ib0",
            ]
        );
        assert_eq!(output.matches("netroot ib0").count(), 1);
    }
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
        source_hook emergency | grep -v '^ibboot:   '; echo > \"$3/fifo\"; wait; (source_hook finished) && echo finished"
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
                "<3>ibboot: ib0: livenet:http://10.0.0.2/a.img: the boot waits: dracut has been \
                 downloading, unpacking or logging in for 30 s",
                "ended: 7"
            ]
        );
    }
}

/// xCAT's handler mounts a tmpfs and unpacks the root file system there; the interface of another
/// network module comes up meanwhile.
#[test]
fn a_root_that_is_unpacked_is_complete_and_unpacked_once() {
    let script = format!(
        "{ONLINE} netroot=xcat handler=xcatroot
        begins() {{ (netif=eth0; source_hook hold; echo \"netroot $netif\"); }}
        printf 'echo begun; [ $1 = eth0 ] || {{ mkdir %s/proc; echo > %s/mounted; read -r _ < %s/fifo; }}\n' \"$NEWROOT\" \"$3\" \"$3\" > \"$3/sbin/netroot\"
        mkfifo \"$3/fifo\" \"$3/mounted\"
        printf 'online ib0\noffline ib1\n' > /run/ibboot/interfaces
        source_hook job > /dev/null; read -r _ < \"$3/mounted\"
        (source_hook finished) || echo unpacking
        begins; ls /run/ibboot/held-*
        echo > \"$3/fifo\"; wait; (source_hook finished) && echo complete
        turn; begins; turn"
    );
    plays(
        "unpack",
        &script,
        "unpacking\n/run/ibboot/held-eth0\ncomplete\nbegun\nfinished\nnetroot eth0\nfinished\n",
    );
}

/// anaconda writes the headers of its requests in a hook of settled, and fetches the kickstart in one of online.
#[test]
fn hooks_of_settled_come_before_those_of_online() {
    let script = format!(
        "{ONLINE} rm /run/ibboot/settled /run/ibboot/result; echo 'online ib0' > /run/ibboot/interfaces
        mkdir \"$hookdir/initqueue/settled\"; printf 'continue\n180\nauto\n' > /run/ibboot/requested; : > /run/ibboot/complete
        settled() {{ source_hook settled; wait; echo settled; }}
        echo early; turn; settled; echo verified > /run/ibboot/result; turn
        rm /run/ibboot/settled /run/ibboot/result /run/ibboot/online-ib0 /run/ibboot/netroot; unset ibboot_is_decided ibboot_first
        echo late; turn; echo verified > /run/ibboot/result; turn; turn; settled; turn
        rm /run/ibboot/settled /run/ibboot/result /run/ibboot/online-ib0 /run/ibboot/netroot; unset ibboot_is_decided ibboot_first
        echo between; turn; printf 'failed shell\nno cable\n' > /run/ibboot/result; settled; turn
        rm /run/ibboot/settled /run/ibboot/online-ib0; unset ibboot_is_decided ibboot_first; echo verified > /run/ibboot/result
        echo never; turn; uptime 14.99; turn; uptime 15.00; turn"
    );
    plays(
        "settled",
        &script,
        "early\nsettled\nonline ib0\nnetroot ib0\nfinished\n\
         late\nonline ib0\nnetroot ib0\nsettled\nfinished\n\
         between\nsettled\nemergency_shell ibboot: no cable\nonline ib0\nnetroot ib0\nfinished\n\
         never\nonline ib0\nnetroot ib0\nfinished\n",
    );
}

/// A shell that was killed, or that could not write its end (a full /run), must not hold the boot for ever.
#[test]
fn an_attempt_whose_shell_is_gone_has_ended() {
    let script = format!(
        "{ONLINE} netroot=livenet:http://10.0.0.2/a.img
        echo 'online ib0' > /run/ibboot/interfaces
        turn; echo 'running 5 ib0: livenet:http://10.0.0.2/a.img' > /run/ibboot/netroot
        main_loop=7; uptime 9.00; source_hook job; echo \"lost: $main_loop\"; cat /run/ibboot/netroot
        (source_hook finished) && echo finished
        echo 'running 9 ib0: livenet:http://10.0.0.2/a.img' > /run/ibboot/netroot; rm /run/ibboot/online-ib0
        uptime 12.00; turn; cat /run/ibboot/netroot"
    );
    plays(
        "lost end",
        &script,
        "online ib0\nnetroot ib0\nfinished\nlost: 7\nended 9 ib0: livenet:http://10.0.0.2/a.img\nfinished\n\
         online ib0\nnetroot ib0\nfinished\nended 12 ib0: livenet:http://10.0.0.2/a.img\n",
    );
}
