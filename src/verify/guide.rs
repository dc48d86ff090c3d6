// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of a failed check, the most frequent first, and commands that tell them apart: the
//! source of `ibboot explain`, of ibboot.checks(7) and of docs/troubleshooting.md. Pure.

use kernel_cmdline::{PARAMETERS, Parameter, nearest};

use super::checks::{Check, Id, Severity, TABLE};
use crate::system::terminal::Terminal;

/// What to look at when a check fails.
#[derive(Debug, Clone, Copy)]
pub struct Guide {
    /// Causes, the most frequent first.
    pub causes: &'static [&'static str],
    /// Commands on the node.
    pub node: &'static [&'static str],
    /// Commands on the host of the subnet manager, or of the server that the check is about.
    pub server: &'static [&'static str],
    /// Commands on a switch with NVIDIA's MLNX-OS.
    pub switch: &'static [&'static str],
}

const DRIVER: &[&str] = &[
    "lspci -nn -d ::0207",
    "dmesg | grep -i -e mlx -e hfi -e infiniband",
    "ibboot plan",
];
const FABRIC: &[&str] = &["ibboot status", "ibstat", "sminfo"];
const OPENSM: &[&str] = &[
    "systemctl status opensm",
    "tail /var/log/opensm.log",
    "ibnetdiscover",
];
const SWITCH_PORT: &[&str] = &["show interfaces ib status", "show ib sm"];
const OTHERS: &[&str] = &[
    "nmcli device",
    "networkctl",
    "journalctl -b -u NetworkManager -u systemd-networkd",
];
const BOND: &[&str] = &["cat /proc/net/bonding/bond0", "ibboot status"];
const DHCP: &[&str] = &["ibboot status", "dmesg | grep 'ibboot: .*DHCP'"];
const DHCP_SERVER: &[&str] = &[
    "tcpdump -i ib0 -vvv port 67 or port 547",
    "journalctl -u dnsmasq -u kea-dhcp4 -u dhcpd",
];
const ROOT: &[&str] = &[
    "findmnt -o SOURCE,FSTYPE,OPTIONS /",
    "ip route",
    "rdma resource show cm_id",
];

/// When exactly the check passes or applies, where that is more than its row says. May be empty.
pub fn detail(id: Id) -> &'static str {
    match id {
        Id::ModuleLive => "A builtin module passes; another one must have the initstate live.",
        Id::RdmaNetns => "Only with rd.ib.netns=.",
        Id::HcaDevice => "Only with rd.ib.require=all, which means every HCA on the PCI bus.",
        Id::DevicePresent => "After boot: the device with the same node GUID, whatever its name.",
        Id::DeviceAnswers => {
            "In reports only if the device does not answer; the result is then unknown."
        }
        Id::PortNetdev => "Only for links of rd.ib.link=.",
        Id::PortPhysicalState => {
            "Polling: the other end does not answer. Disabled: there is no cable (mlx5 reports Disabled \
             then), or this machine or its peer disabled the port, or the network interface below a RoCE \
             port is down. PortConfigurationTraining: the link is training."
        }
        Id::PortState => {
            "INIT: no subnet manager has configured the port. INIT with the LID of a subnet manager: the \
             subnet manager sets the LIDs first, and activates the ports after it has computed the routes. \
             ARMED: the subnet manager has not finished. DOWN with LinkUp: a virtual function whose state \
             or GUIDs are not set, or a subnet manager that does not support virtualization."
        }
        Id::PortLid | Id::PortSmLid => "InfiniBand only. Valid LIDs are 1 to 49151.",
        Id::PortSa => {
            "Only with check --sm, and on InfiniBand. The limit is 3 s. Without --sm ibboot check queries \
             the subnet administrator only if an interface has no carrier: a subnet works for a while without \
             its manager, and thousands of nodes would send queries at every check. Run ibboot check --sm \
             on a few nodes."
        }
        Id::PortRate => {
            "Only with rd.ib.rate=. The kernel reports 10 Gb/sec (4X SDR) for each speed that it does not \
             know (NDR, XDR): the check is unknown then."
        }
        Id::PortLanes => "InfiniBand only, and in reports only if the link has one lane.",
        Id::PortSpeed => {
            "The ports compared have the same board (PSID), link layer and subnet. In reports only if the \
             port is slower, and not if rd.ib.rate= gives the port a rate: rd.ib.rate=mlx5_3:1=200 states \
             that a slower port is intended. The kernel does not report the speed that a port could have."
        }
        Id::HcaPcie => {
            "Only if the kernel reports both ends of the PCI Express link, which it does not for virtual functions."
        }
        Id::IpoibName => "Only with ifname=.",
        Id::IpoibMode => "Only with rd.ib.mode=.",
        Id::PortPkey => "Limited membership is a warning.",
        Id::IpoibCarrier => {
            "The interface must join its broadcast group. After 2 s without carrier ibboot queries the subnet \
             administrator through /dev/infiniband/umad* (module ib_umad), and the message names the \
             cause. If the subnet administrator answers and has the group, the kernel tries again after up \
             to 16 s."
        }
        Id::BondPresent => "In reports a bond is a link without a port.",
        Id::BondMode => "The mode is active-backup, and fail_over_mac is active.",
        Id::IpoibMtu => {
            "Any MTU passes if none is requested, or max. A warning if the MTU differs from the suggestion \
             of a DHCP server. In datagram mode the broadcast group limits the MTU."
        }
        Id::LeasePresent => "Only with DHCP; the lease must still be valid.",
        Id::Lease6Present => {
            "Only with DHCPv6, with either6 only if no router assigned an address; the lease must still be \
             valid. If DHCP was requested as well, a lease that is missing after \
             rd.net.timeout.ip-required= is only a warning while the other family has a lease."
        }
        Id::AddressPresent => {
            "Static and leased addresses, and the address of IPv6 autoconfiguration. A tentative address \
             (duplicate address detection is running) does not count. ibboot sets a static IPv4 address at \
             once and probes the address for one second while the boot continues (RFC 5227): if another host uses \
             the address, ibboot removes it and names that host."
        }
        Id::RoutePresent => {
            "The other routes are those of rd.route=. A missing route that a DHCP server suggested is a \
             warning."
        }
        Id::ServerRdma => {
            "The servers are those of rd.ib.probe=, by default the server of a root file system over RDMA. \
             If a port is given, the server must listen on this port. ibboot queries the servers once the \
             links that the boot needs are verified."
        }
        Id::RootMounted => {
            "After the switch into the root file system, and only if a requested interface leads to the \
             server that root=, netroot=, rd.nvmf.discover= or a DHCP server names. With iSCSI or NVMe the \
             file system must be on a disk of that server (a discovery controller may name another server). \
             For a live image the check only requires that the root file system is a live image. \
             rd.nvmf.discover= means the root file system unless root= or netroot= names a server: in the \
             initramfs, connect only to the servers of the root file system."
        }
        Id::RootTransport => {
            "With several controllers or sessions, each must name the transport (of iSCSI tcp or iser). A \
             live image has no transport."
        }
        Id::RootPath => {
            "Over RDMA each connection to the server uses a verified link; over TCP the route to the server \
             leads through the interface of a verified link."
        }
        _ => "",
    }
}

/// What to look at when this check fails.
pub fn guide(id: Id) -> Guide {
    let (causes, node, server, switch): (&[&str], &[&str], &[&str], &[&str]) = match id {
        Id::ModuleLive => (
            &[
                "The module is not in the initramfs: rebuild it with dracut --add-drivers.",
                "The module is blacklisted (modprobe.blacklist=, rd.driver.blacklist=, modprobe.d).",
                "The module belongs to another kernel, or its signature is refused (Secure Boot).",
            ],
            &["ibboot plan", "dmesg | tail", "lsinitrd | grep mlx5"],
            &[],
            &[],
        ),
        Id::RdmaNetns => (
            &[
                "Another network namespace existed when the mode was set.",
                "The kernel is older than 5.2 and has no such mode.",
            ],
            &["rdma system show", "ip netns list"],
            &[],
            &[],
        ),
        Id::WishPossible => (
            &[
                "A kernel module is not in the image.",
                "The mode, the MTU or the link layer does not exist on this device.",
            ],
            &["ibboot plan"],
            &[],
            &[],
        ),
        Id::HcaDevice => (
            &[
                "The driver could not start the card: firmware, PCIe link or power.",
                "The driver of this card is not in the initramfs.",
                "The card was still starting when the driver probed it (BlueField).",
            ],
            DRIVER,
            &[],
            &[],
        ),
        Id::DevicePresent => (
            &[
                "The driver is not in the initramfs, or is not loaded.",
                "The device or the interface has another name here: names depend on udev, guid= and pci= do not.",
                "The card was removed or replaced.",
            ],
            DRIVER,
            &[],
            &[],
        ),
        Id::DeviceAnswers => (
            &[
                "The firmware of the card hangs.",
                "The card dropped off the PCI bus.",
            ],
            &[
                "dmesg | grep -i -e timeout -e 'health'",
                "lspci -vv -s ADDRESS",
            ],
            &[],
            &[],
        ),
        Id::PortLinkLayer => (
            &[
                "The port type of a VPI card is Ethernet in its firmware.",
                "The argument names another port than intended.",
            ],
            &["ibstat", "mlxconfig -d ADDRESS query LINK_TYPE_P1"],
            &[],
            &[],
        ),
        Id::PortNetdev => (
            &[
                "The interface has another name than in the request.",
                "The port is a member of a RoCE bond.",
            ],
            &["rdma link", "ip link"],
            &[],
            &[],
        ),
        Id::PortPhysicalState => (
            &[
                "No cable, or the cable is not fully inserted.",
                "The switch port is disabled, or the switch has no power.",
                "The cable or the transceiver is faulty, or does not fit the speed of the other end.",
                "The link is still training: some seconds after the driver started, longer with optical cables.",
            ],
            &["ibstat", "mlxlink -d ADDRESS", "ethtool -m IF (RoCE)"],
            &[],
            SWITCH_PORT,
        ),
        Id::PortState => (
            &[
                "No subnet manager runs on this subnet.",
                "The subnet manager still sweeps: up to 30 s in a large fabric.",
                "The subnet manager runs on another subnet, or is bound to another port of its host.",
                "The subnet manager refuses the port: duplicate GUID, or a virtual function without support for virtualization.",
            ],
            FABRIC,
            OPENSM,
            SWITCH_PORT,
        ),
        Id::PortLid | Id::PortSmLid | Id::PortSa => (
            &[
                "The subnet manager ended after it had configured the port.",
                "The subnet manager hangs or is overloaded.",
                "The standby subnet manager took over and did not sweep the port.",
            ],
            FABRIC,
            OPENSM,
            &["show ib sm"],
        ),
        Id::PortRate | Id::PortLanes | Id::PortSpeed => (
            &[
                "The cable or the transceiver is damaged or dirty: the link trained with fewer lanes.",
                "The switch port or the cable supports only a lower speed.",
            ],
            &["ibstat", "iblinkinfo", "mlxlink -d ADDRESS"],
            &[],
            SWITCH_PORT,
        ),
        Id::HcaPcie => (
            &[
                "The card or its riser is not fully inserted.",
                "A lane of the slot, the riser or the card is faulty.",
                "The firmware setup of the machine limits the slot, or divides its lanes.",
            ],
            &[
                "lspci -vv -s ADDRESS | grep -e LnkCap: -e LnkSta:",
                "dmesg | grep -i -e AER -e bandwidth",
            ],
            &[],
            &[],
        ),
        Id::IpoibPresent | Id::IpoibName => (
            &[
                "ib_ipoib is not in the initramfs.",
                "udev gave the interface another name (net.ifnames=, .link files).",
            ],
            &["ip -d link show type ipoib", "ibboot plan"],
            &[],
            &[],
        ),
        Id::IpoibMode => (
            &[
                "Enhanced IPoIB of mlx5 has no connected mode.",
                "NetworkManager set the transport-mode of its profile.",
            ],
            &["cat /sys/class/net/IF/mode", "modinfo -p mlx5_core"],
            &[],
            &[],
        ),
        Id::PortPkey => (
            &[
                "partitions.conf does not list the GUID of this port.",
                "The port is a limited member of the partition.",
                "The subnet manager has not read partitions.conf since its change.",
            ],
            &["cat /sys/class/infiniband/DEVICE/ports/1/pkeys/*"],
            &[
                "grep -n ipoib /etc/opensm/partitions.conf",
                "pkill -HUP opensm",
            ],
            &["show ib partition"],
        ),
        Id::IpoibUp => (
            &["Another program set the interface down."],
            OTHERS,
            &[],
            &[],
        ),
        Id::IpoibCarrier => (
            &[
                "The subnet manager has no broadcast group for the partition: the ipoib flag in partitions.conf is missing.",
                "The rate or the MTU of the broadcast group exceeds what the port supports.",
                "The subnet administrator hangs or is gone.",
                "The port is a limited member of the partition.",
            ],
            &["ibboot check --sm", "saquery -g", "dmesg | grep multicast"],
            &[
                "grep -n ipoib /etc/opensm/partitions.conf",
                "tail /var/log/opensm.log",
            ],
            &["show ib partition"],
        ),
        Id::BondPresent | Id::BondMode | Id::BondSlaves | Id::BondOptions | Id::BondCarrier => (
            &[
                "An interface of the bond is missing or has no carrier: its own checks say why.",
                "Another program created or changed the bond.",
                "The bonding driver refused an option; InfiniBand needs mode=active-backup.",
            ],
            BOND,
            &[],
            &[],
        ),
        Id::IpoibMtu => (
            &[
                "The broadcast group of the partition grants a smaller MTU (mtu=5 gives 4092).",
                "MTUs over 4092 need connected mode.",
                "Another program set the MTU.",
            ],
            &["ip link show IF", "saquery -g"],
            &["grep -n mtu= /etc/opensm/partitions.conf"],
            &["show ib partition"],
        ),
        Id::LeasePresent | Id::Lease6Present => (
            &[
                "No DHCP server or relay listens in this partition.",
                "The server ignores InfiniBand (hardware type 32): of the usual servers only dnsmasq answers without a relay.",
                "The server has no reservation for the client identifier of this node.",
                "The pool of addresses is exhausted.",
            ],
            DHCP,
            DHCP_SERVER,
            &[],
        ),
        Id::AddressPresent | Id::RoutePresent => (
            &[
                "Another program removed the address or the route.",
                "Another host has the address: the message names its GUID.",
                "The gateway is not within the prefix of the interface.",
            ],
            OTHERS,
            &[],
            &[],
        ),
        Id::ServerRdma => (
            &[
                "The server does not listen over RDMA: rdma_cm, or the RDMA port of NFS, iSER or NVMe, is missing.",
                "A firewall drops UDP port 4791 (RoCE).",
                "The route to the server leaves through another interface.",
            ],
            &["rping -c -a SERVER", "ip route get SERVER"],
            &[
                "cat /proc/fs/nfsd/portlist",
                "nvmet: ls /sys/kernel/config/nvmet/ports",
                "lsmod | grep rdma_cm",
            ],
            &[],
        ),
        Id::RootMounted | Id::RootTransport | Id::RootPath => (
            &[
                "Another server or transport was mounted than requested (a fallback of dracut, or of the live image).",
                "A route through another interface is preferred.",
                "A link was repaired after the mount: the connection stays on the link that it used before.",
            ],
            ROOT,
            &[],
            &[],
        ),
    };
    Guide {
        causes,
        node,
        server,
        switch,
    }
}

impl Guide {
    /// The commands, with the host on which each list is run.
    pub fn hosts(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let hosts = [
            ("on the node", self.node),
            (
                "on the host of the subnet manager or of the server",
                self.server,
            ),
            ("on the switch", self.switch),
        ];
        hosts
            .into_iter()
            .filter(|(_, commands)| !commands.is_empty())
    }
}

/// The text of `ibboot explain`: a check or a kernel argument. The error is the nearest name, if
/// there is one.
pub fn explain(name: &str, terminal: &Terminal) -> Result<String, Option<&'static str>> {
    let argument = name.split('=').next().unwrap_or(name);
    if let Some(row) = TABLE.iter().find(|row| row.name == name) {
        return Ok(check(row, terminal));
    }
    if let Some(parameter) = PARAMETERS.iter().find(|p| p.name == argument) {
        return Ok(parameter_text(parameter, terminal));
    }
    let names = TABLE.iter().map(|row| row.name);
    Err(nearest(
        argument,
        names.chain(PARAMETERS.iter().map(|p| p.name)),
    ))
}

/// The names of all checks and arguments, one line each.
pub fn list() -> String {
    let checks = TABLE
        .iter()
        .map(|row| format!("{:<24} {}\n", row.name, row.why));
    let arguments = PARAMETERS.iter().map(|p| format!("{}\n", p.grammar));
    checks.chain(arguments).collect()
}

/// What a check means when it fails.
pub fn severity(row: &Check) -> &'static str {
    match row.severity {
        Severity::Critical => "A failure is critical: the link cannot be used as requested.",
        Severity::Warning => "A failure is a warning: the link works.",
    }
}

/// The checks that must pass before this one, as a sentence; empty if there are none.
pub fn needs(row: &Check) -> String {
    let parents: Vec<&str> = row.parents.iter().map(|id| id.row().name).collect();
    match parents.is_empty() {
        true => String::new(),
        false => format!("Skipped unless these pass: {}.", parents.join(", ")),
    }
}

fn check(row: &Check, terminal: &Terminal) -> String {
    let guide = guide(row.id);
    let mut out = terminal.wrapped(&format!("{}: proves that {}.", row.name, row.why), 0);
    let message = format!("If not: \"{}\". {}", row.failure, severity(row));
    out.push_str(&terminal.wrapped(&message, 0));
    for text in [detail(row.id).to_owned(), needs(row)] {
        if !text.is_empty() {
            out.push_str(&terminal.wrapped(&text, 0));
        }
    }
    let (seconds, words) = (row.awaits.usual_s(), row.awaits.words());
    let text = format!("During the boot the wait for {words} usually ends within {seconds} s.");
    out.push_str(&terminal.wrapped(&text, 0));
    out.push_str("\ncauses, the most frequent first:\n");
    for (number, cause) in (1..).zip(guide.causes) {
        out.push_str(&terminal.wrapped(&format!("{number}. {cause}"), 2));
    }
    for (host, commands) in guide.hosts() {
        out.push_str(&format!("\n{host}:\n"));
        for command in commands {
            out.push_str(&format!("    {command}\n"));
        }
    }
    out
}

fn parameter_text(parameter: &Parameter, terminal: &Terminal) -> String {
    let mut out = String::new();
    for form in parameter.grammar.split(" | ") {
        out.push_str(&format!("{form}\n"));
    }
    for paragraph in parameter.help.split("\n\n") {
        out.push('\n');
        out.push_str(&terminal.wrapped(paragraph, 2));
    }
    if let Some(note) = parameter.effect.note() {
        out.push('\n');
        out.push_str(&terminal.wrapped(note, 2));
    }
    out.push_str(&format!(
        "\ndefault: {}\nexample: {}\n",
        parameter.default, parameter.example
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_and_every_argument_is_explained() {
        let terminal = Terminal {
            columns: 80,
            has_colours: false,
        };
        for name in TABLE
            .iter()
            .map(|row| row.name)
            .chain(PARAMETERS.iter().map(|p| p.name))
        {
            let text = explain(name, &terminal).unwrap();
            assert!(text.lines().count() > 4, "{name}: {text}");
        }
        for row in TABLE {
            let guide = guide(row.id);
            assert!(
                !guide.causes.is_empty() && !guide.node.is_empty(),
                "{}",
                row.name
            );
            assert!(
                guide.causes.iter().all(|cause| cause.ends_with('.')),
                "{}",
                row.name
            );
        }
        assert!(explain("rd.ib.mode=connected", &terminal).is_ok());
        assert_eq!(explain("port.stat", &terminal), Err(Some("port.state")));
        assert_eq!(explain("x", &terminal), Err(None));
    }
}
