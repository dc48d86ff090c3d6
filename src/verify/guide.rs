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
                "The link still trains: some seconds after the driver started, longer with optical cables.",
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
                "A link was repaired after the mount: the connection stays on the first one.",
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

fn check(row: &Check, terminal: &Terminal) -> String {
    let guide = guide(row.id);
    let mut out = terminal.wrapped(&format!("{}: proves that {}.", row.name, row.why), 0);
    let message = format!("If not: \"{}\". {}", row.failure, severity(row));
    out.push_str(&terminal.wrapped(&message, 0));
    if !row.parents.is_empty() {
        let parents: Vec<&str> = row.parents.iter().map(|id| id.row().name).collect();
        let text = format!("Skipped unless these pass: {}.", parents.join(", "));
        out.push_str(&terminal.wrapped(&text, 0));
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
