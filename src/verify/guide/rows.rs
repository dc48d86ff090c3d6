// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: a row for each check: when it applies, causes of its failure, and commands.

use crate::verify::checks::Id;

/// What to look at when a check fails.
#[derive(Debug, Clone, Copy)]
pub struct Guide {
    /// When exactly the check passes or applies, where that is more than its row in `checks.rs` says.
    /// May be empty.
    pub detail: &'static str,
    /// Causes, the most frequent first.
    pub causes: &'static [&'static str],
    /// Commands on the node.
    pub node: &'static [&'static str],
    /// Commands on the host of the subnet manager, or of the server that the check is about.
    pub server: &'static [&'static str],
    /// Commands on a switch with NVIDIA's MLNX-OS.
    pub switch: &'static [&'static str],
}

const NONE: Guide = Guide {
    detail: "",
    causes: &[],
    node: &[],
    server: &[],
    switch: &[],
};

/// The subnet manager went away after it had configured the port.
const LEFT: Guide = Guide {
    causes: &[
        "The subnet manager ended after it had configured the port.",
        "The subnet manager hangs or is overloaded.",
        "The standby subnet manager took over and did not sweep the port.",
    ],
    node: FABRIC,
    server: OPENSM,
    switch: &["show ib sm"],
    ..NONE
};

const SLOW: Guide = Guide {
    causes: &[
        "The cable or the transceiver is damaged or dirty: the link trained with fewer lanes.",
        "The switch port or the cable supports only a lower speed.",
    ],
    node: &[
        "ibboot status",
        "ibstat",
        "iblinkinfo",
        "mstlink -d PCI-ADDRESS",
    ],
    switch: SWITCH_PORT,
    ..NONE
};

const DRIVER: &[&str] = &[
    "ibboot status",
    "dmesg | grep -i -e mlx -e hfi -e infiniband",
    "ibboot plan",
];
const FABRIC: &[&str] = &["ibboot status", "ibstat", "sminfo"];
const OPENSM: &[&str] = &[
    "pgrep -a opensm",
    "tail /var/log/opensm*.log",
    "ibnetdiscover",
];
// The file is in /etc/opensm on Debian, in /etc/rdma on Red Hat Enterprise Linux.
const IPOIB_FLAG: &str = "grep -ns ipoib /etc/opensm/partitions.conf /etc/rdma/partitions.conf";
const GROUP_MTU: &str = "grep -ns mtu= /etc/opensm/partitions.conf /etc/rdma/partitions.conf";
const SWITCH_PORT: &[&str] = &["show interfaces ib status", "show ib sm"];
const PARTITION: &[&str] = &["show ib partition"];
const OTHERS: &[&str] = &[
    "ibboot up --dry-run",
    "nmcli device",
    "networkctl",
    "journalctl -b -u NetworkManager -u nm-initrd -u systemd-networkd",
];
const BOND: &[&str] = &["cat /proc/net/bonding/IF", "ibboot status"];
const DHCP: &[&str] = &["ibboot status", "dmesg | grep -A4 'ibboot: .*DHCP'"];
const ROOT: &[&str] = &[
    "findmnt -o SOURCE,FSTYPE,OPTIONS /",
    "ip route",
    "rdma resource show cm_id",
];

/// What to look at when this check fails: one row for each check.
pub fn guide(id: Id) -> Guide {
    match id {
        Id::ModuleLive => Guide {
            detail: "A builtin module passes; another one must be loaded and initialised (initstate live).",
            causes: &[
                "The module is not in the initramfs: dracut --force --add-drivers MODULE; for later builds add_drivers+=\" MODULE \" in a file of /etc/dracut.conf.d.",
                "The module is in a package that is not installed (Ubuntu: linux-modules-extra-RELEASE).",
                "The module is blacklisted (modprobe.blacklist=, rd.driver.blacklist=, modprobe.d).",
                "An install line of modprobe.d loads nothing, or the kernel has module_blacklist=.",
                "The module belongs to another kernel, or its signature is refused (Secure Boot).",
                "The sysctl kernel.modules_disabled is 1: until the next boot the kernel loads no module.",
            ],
            node: &["ibboot plan", "dmesg | tail", "modprobe -nv MODULE"],
            ..NONE
        },
        Id::RdmaNetns => Guide {
            detail: "Only with rd.ib.netns=.",
            causes: &[
                "Another network namespace existed when the mode was set.",
                "The kernel is older than 5.2 and has no such mode.",
            ],
            node: &["rdma system show", "ip netns list"],
            ..NONE
        },
        Id::WishPossible => Guide {
            causes: &[
                "A kernel module is not in the image.",
                "The mode, the MTU or the link layer does not exist on this device.",
            ],
            node: &["ibboot plan"],
            ..NONE
        },
        Id::HcaDevice => Guide {
            detail: "Only with rd.ib.require=all, which means every HCA on the PCI bus.",
            causes: &[
                "The driver could not start the card: firmware, PCIe link or power.",
                "The driver of this card is not in the initramfs.",
                "The card was still starting when the driver probed it (BlueField).",
            ],
            node: DRIVER,
            ..NONE
        },
        Id::DevicePresent => Guide {
            detail: "After boot: the device with the same node GUID, whatever its name. If the device is in \
                     another network namespace and no argument names the port, the check only warns, and the \
                     link is not verified.",
            causes: &[
                "The driver is not in the initramfs, or is not loaded.",
                "ib_ipoib is not in the initramfs, or is not loaded: the message has \"no network interface\".",
                "The device or the interface has another name here: names depend on udev, guid= and pci= do not.",
                "The card was removed or replaced.",
                "The Ethernet port cannot do RoCE (no GID table): RoCE is switched off, or the card is in switchdev mode.",
                "The RDMA device was moved to another network namespace, as that of a container (rd.ib.netns=exclusive).",
            ],
            node: DRIVER,
            ..NONE
        },
        Id::DeviceAnswers => Guide {
            detail: "In reports only while the device does not answer.",
            causes: &[
                "The firmware of the card hangs.",
                "The card dropped off the PCI bus.",
            ],
            node: &[
                "ibboot status",
                "dmesg | grep -i -e timeout -e health",
                "ls /sys/bus/pci/devices/PCI-ADDRESS",
            ],
            ..NONE
        },
        Id::PortLinkLayer => Guide {
            causes: &[
                "The port type of a VPI card is Ethernet in its firmware: mstconfig -d PCI-ADDRESS set LINK_TYPE_P1=1, of the second port LINK_TYPE_P2=1, then reboot.",
                "The argument names another port than intended.",
            ],
            node: &[
                "ibboot status",
                "ibstat",
                "mstconfig -d PCI-ADDRESS query | grep LINK_TYPE",
            ],
            ..NONE
        },
        Id::PortNetdev => Guide {
            detail: "Only for links of rd.ib.link=.",
            causes: &[
                "The interface has another name than in the request.",
                "The port is a member of a RoCE bond.",
            ],
            node: &["ibboot status", "ip link"],
            ..NONE
        },
        Id::PortPhysicalState => Guide {
            detail: "Polling: the other end does not answer. Disabled: there is no cable (mlx5 reports \
                     Disabled then), or this machine or its peer disabled the port; with a network \
                     interface that is down: the interface below a RoCE port is not up. \
                     PortConfigurationTraining: the link is training. ethtool -m works only with the \
                     Ethernet interface of a RoCE port.",
            causes: &[
                "No cable, or the cable is not fully inserted.",
                "The switch port is disabled, or the switch has no power.",
                "The cable or the transceiver is faulty, or does not fit the speed of the other end.",
                "The link still trains: some seconds after the driver started, longer with optical cables.",
            ],
            node: &[
                "ibboot status",
                "ibstat",
                "mstlink -d PCI-ADDRESS -m",
                "ethtool -m IF",
            ],
            switch: SWITCH_PORT,
            ..NONE
        },
        Id::PortState => Guide {
            detail: "INIT: no subnet manager has configured the port. INIT with the LID of a subnet manager: \
                     the subnet manager sets the LIDs first, and activates the ports after it has computed \
                     the routes. ARMED: the subnet manager has not finished. DOWN with LinkUp: a virtual \
                     function whose state or GUIDs are not set, or a subnet manager that does not support \
                     virtualization.",
            causes: &[
                "No subnet manager runs on this subnet.",
                "The subnet manager still sweeps: up to 30 s in a large fabric.",
                "The subnet manager runs on another subnet, or is bound to another port of its host.",
                "The subnet manager refuses the port: duplicate GUID, or a virtual function without support for virtualization.",
            ],
            node: FABRIC,
            server: OPENSM,
            switch: SWITCH_PORT,
        },
        Id::PortLid | Id::PortSmLid => Guide {
            detail: "InfiniBand only. From 1 to 49151 (0xbfff), on Omni-Path to 15728639 (0xefffff), where \
                     65535 (0xffff) means none.",
            ..LEFT
        },
        Id::PortSa => Guide {
            detail: "Only with check --sm, and on InfiniBand. The limit is 3 s. Without --sm ibboot check \
                     queries the subnet administrator only if an interface has no carrier: a subnet works for a \
                     while without its manager, and thousands of nodes would send queries at every check. \
                     Run ibboot check --sm on a few nodes.",
            ..LEFT
        },
        Id::PortRate => Guide {
            detail: "Only with rd.ib.rate=. The kernel reports 10 Gb/sec (4X SDR) for each speed that it \
                     does not know (NDR, XDR); for an Ethernet port 40 Gb/sec (4X QDR) on mlx5, on other \
                     cards SDR, 100 Gb/sec (4X EDR) or 400 Gb/sec (4X NDR); one lane for an Omni-Path link \
                     with two or three: the check is unknown then, and the boot waits until the deadline. \
                     Older versions of irdma and mana_ib report 100 Gb/sec for every link: a slower one \
                     passes.",
            ..SLOW
        },
        Id::PortLanes => Guide {
            detail: "InfiniBand only, and in reports only if the link has one lane, on Omni-Path one to three.",
            ..SLOW
        },
        Id::PortSpeed => Guide {
            detail: "InfiniBand only. The ports compared have the same board (PSID) and subnet: of \
                     Ethernet ports the kernel does not report which network they are on. In reports only \
                     if the port is slower, and not if rd.ib.rate= gives the port a rate: \
                     rd.ib.rate=mlx5_3:1=200 says that a slower port is intended. The kernel does not report \
                     the speed that a port could have.",
            ..SLOW
        },
        Id::HcaPcie => Guide {
            detail: "Only if the kernel reports both ends of the PCI Express link, which it does not for \
                     virtual functions, and not in a virtual machine of QEMU, whose slots are made up.",
            causes: &[
                "The card or its riser is not fully inserted.",
                "A lane of the slot, the riser or the card is faulty.",
                "The firmware setup of the machine limits the slot, or divides its lanes.",
            ],
            node: &[
                "grep . /sys/bus/pci/devices/PCI-ADDRESS/*_link_*",
                "dmesg | grep -i -e AER -e bandwidth",
            ],
            ..NONE
        },
        Id::IpoibPresent => Guide {
            causes: &[
                "ib_ipoib is not in the initramfs, or is not loaded.",
                "The port is a virtual function without a GUID.",
                "The child interface of the requested P_Key does not exist: run ibboot up, which creates it.",
                "The interface was deleted, or moved to another network namespace, as that of a container.",
            ],
            node: &[
                "ibboot status",
                "ip -o link | grep link/infiniband",
                "ibboot plan",
            ],
            ..NONE
        },
        Id::IpoibName => Guide {
            detail: "Only with ifname=.",
            causes: &[
                "udev gave the interface another name (a .link file or a rule).",
                "Another interface has the name.",
                "The interface was up when it was to be renamed, and the kernel is older than 6.2.",
            ],
            node: &[
                "ip -o link | grep link/infiniband",
                "udevadm info /sys/class/net/IF",
            ],
            ..NONE
        },
        Id::IpoibMode => Guide {
            detail: "Only with rd.ib.mode=. Connected mode is possible if the first byte of the interface's \
                     hardware address has the bit 0x80 (80 to ff).",
            causes: &[
                "Enhanced IPoIB of mlx5 has no connected mode.",
                "NetworkManager set the transport-mode of its profile.",
            ],
            node: &[
                "cat /sys/class/net/IF/mode",
                "cat /sys/class/net/IF/address",
            ],
            ..NONE
        },
        Id::PortPkey => Guide {
            detail: "Limited membership is a warning.",
            causes: &[
                "partitions.conf does not list the GUID of this port.",
                "The port is a limited member of the partition.",
                "The subnet manager has not read partitions.conf since its change.",
            ],
            node: &["cat /sys/class/infiniband/DEVICE/ports/PORT/pkeys/*"],
            server: &[IPOIB_FLAG, "pkill -HUP opensm"],
            switch: PARTITION,
        },
        Id::IpoibUp => Guide {
            causes: &[
                "ibboot up ended before it set the interface up: run ibboot up.",
                "Another program set the interface down.",
            ],
            node: OTHERS,
            ..NONE
        },
        Id::IpoibCarrier => Guide {
            detail: "The interface must join its broadcast group. After 2 s without carrier ibboot queries the \
                     subnet administrator through /dev/infiniband/umad* (module ib_umad), and the message \
                     names the cause. If the subnet administrator answers and has the group, the kernel \
                     tries again after up to 16 s.",
            causes: &[
                "The subnet manager has no broadcast group for the partition: the ipoib flag in partitions.conf is missing.",
                "The rate or the MTU of the broadcast group exceeds what the port supports.",
                "The subnet administrator hangs or is gone.",
            ],
            node: &["ibboot check --sm", "saquery -g", "dmesg | grep multicast"],
            server: &[IPOIB_FLAG, "tail /var/log/opensm*.log"],
            switch: PARTITION,
        },
        Id::IpoibGroup => Guide {
            detail: "Only with check --sm. An interface keeps its carrier when a subnet manager that starts anew, \
                     or another one, does not make the group again: unicast works while the neighbours are \
                     known, ARP, neighbour discovery and DHCP do not.",
            causes: &[
                "The subnet manager runs with another partitions.conf: the ipoib flag of the partition is missing.",
                "The rate or the MTU of the new broadcast group exceeds what the port supports.",
            ],
            node: &["ibboot check --sm", "saquery -g", "dmesg | grep multicast"],
            server: &[IPOIB_FLAG, "tail /var/log/opensm*.log"],
            switch: PARTITION,
        },
        Id::BondPresent => Guide {
            detail: "In reports a bond is a link without a port.",
            causes: &[
                "The module bonding is not in the initramfs.",
                "Another program removed the bond.",
                "An interface that is not a bond has the name.",
            ],
            node: &["ip -d link show IF", "ibboot plan", "dmesg | grep -i bond"],
            ..NONE
        },
        Id::BondMode => Guide {
            detail: "The mode is active-backup, and fail_over_mac is active.",
            causes: &["Another program created or changed the bond."],
            node: BOND,
            ..NONE
        },
        Id::BondSlaves => Guide {
            causes: &[
                "An interface of the bond is missing: its own checks say why.",
                "Another program took an interface out of the bond.",
                "The bonding driver refused an interface: see dmesg.",
            ],
            node: BOND,
            ..NONE
        },
        Id::BondOptions => Guide {
            causes: &[
                "The bonding driver refused an option: its value, or its use in active-backup mode.",
                "Another program created or changed the bond.",
            ],
            node: &[
                "cat /proc/net/bonding/IF",
                "modinfo -p bonding",
                "dmesg | grep -i bond",
            ],
            ..NONE
        },
        Id::BondCarrier => Guide {
            detail: "The bond is up, and one of its interfaces carries the traffic.",
            causes: &[
                "No interface of the bond has carrier: their own checks say why.",
                "ibboot up ended before it set the bond up: run ibboot up.",
                "Another program set the bond down.",
            ],
            node: BOND,
            ..NONE
        },
        Id::IpoibMtu => Guide {
            detail: "Any MTU passes if none is requested, or max. A warning if the MTU differs from the \
                     suggestion of a DHCP server. In datagram mode the broadcast group limits the MTU.",
            causes: &[
                "The broadcast group of the partition grants a smaller MTU (mtu=5 gives 4092).",
                "MTUs over 4092 need connected mode.",
                "Another program set the MTU.",
            ],
            node: &["ibboot status", "ip link show IF", "saquery -g"],
            server: &[GROUP_MTU],
            switch: PARTITION,
        },
        Id::LeasePresent => Guide {
            detail: "Only with DHCP. A lease that has expired is a warning while ibboot-lease.service may still renew the \
                     lease; the address is kept only if the root file system needs the address. If ibboot-lease.service was never started, nothing renews the \
                     lease: a warning from its rebinding time (T2) on, critical after its end. With \
                     rd.ib.handover=nm or networkd the check is skipped: that program renews the lease, and \
                     address.present expects an address of this family. The check is also skipped after another \
                     program gave the interface an address with a lifetime, unless the root file system needs the \
                     lease. If IPv6 addresses were requested as well, a lease that is missing \
                     after rd.net.timeout.ip-required= is a warning while the interface has one of those, \
                     unless the server of the root file system has an IPv4 address.",
            causes: &[
                "No DHCP server or relay listens in this partition.",
                "The server ignores InfiniBand (hardware type 32): of the usual servers only dnsmasq answers without a relay.",
                "The server has no reservation for the client identifier of this node.",
                "The pool of addresses is exhausted.",
                "ibboot-lease.service is not enabled: systemctl enable --now ibboot-lease.service.",
            ],
            node: DHCP,
            server: &[
                "tcpdump -i IF -vvv port 67",
                "journalctl -u dnsmasq -u kea-dhcp4 -u kea-dhcp4-server -u dhcpd -u isc-dhcp-server",
            ],
            ..NONE
        },
        Id::Lease6Present => Guide {
            detail: "Only with DHCPv6, with either6 only if no router assigned an address. A lease that has \
                     expired is a warning while ibboot-lease.service may still renew the lease; the address is \
                     kept only if the root file system needs the address. If \
                     ibboot-lease.service was never started, nothing renews the lease: a warning from its \
                     rebinding time (T2) on, critical after its end. With rd.ib.handover=nm or networkd the \
                     check is skipped: that program renews the lease, and address.present expects an \
                     address of this family. The check is also skipped after another program gave the interface an \
                     address of DHCPv6 with a lifetime, unless the root file system needs the lease. If DHCP was \
                     requested as well, a lease that is missing after rd.net.timeout.ip-required= is a \
                     warning while the interface has a lease of DHCP, unless the server of the root file \
                     system has an IPv6 address.",
            causes: &[
                "No DHCPv6 server or relay listens in this partition.",
                "The interface has no link-local address to send from: duplicate address detection, or no IPv6 in the kernel.",
                "The server has no reservation for the DUID of this node.",
                "The pool of addresses is exhausted.",
                "ibboot-lease.service is not enabled: systemctl enable --now ibboot-lease.service.",
            ],
            node: &[
                "ibboot status",
                "ip -6 address show IF",
                "dmesg | grep -A4 'ibboot: .*DHCP'",
            ],
            server: &[
                "tcpdump -i IF -vvv port 547",
                "journalctl -u dnsmasq -u kea-dhcp6 -u kea-dhcp6-server -u dhcpd6 -u isc-dhcp-server",
            ],
            ..NONE
        },
        Id::AddressPresent => Guide {
            detail: "Static and leased addresses, and the address of IPv6 autoconfiguration. A tentative \
                     address (duplicate address detection is running) does not count. ibboot sets a static \
                     IPv4 address at once and probes the address for one second beside the boot (RFC 5227): \
                     if another host uses the address, ibboot removes it and names that host. With \
                     rd.ib.handover=nm or networkd that program renews the leases: any usable address that \
                     is not link-local counts as the leased one.",
            causes: &[
                "ibboot up ended before the interface had carrier: run ibboot up.",
                "Another program removed the address.",
                "Another host uses the address: the message names its GUID.",
                "Unknown: an answer to the ARP probe was not decoded, so another host may use the address.",
                "No router advertises a prefix in this partition (IPv6 autoconfiguration).",
            ],
            node: OTHERS,
            ..NONE
        },
        Id::RoutePresent => Guide {
            detail: "The interface has a default route through each requested gateway, and the routes of \
                     rd.route= exist. Several interfaces may have a default route each. It is a warning if \
                     the boot device (bootdev=, BOOTIF= or the first ip=) has a requested gateway, and another \
                     default route has a lower metric, so that the kernel uses it, or the same metric, so that \
                     the kernel may use it: one through an interface that is not InfiniBand, or through another \
                     gateway of the boot device. A missing route that a \
                     DHCP server suggested is a warning. With rd.ib.handover=nm or networkd that program \
                     decides about metrics and about suggested routes, which are not compared.",
            causes: &[
                "The gateway is not within the prefix of the interface.",
                "Another program removed the route.",
                "Warning: another program set a default route with a lower metric.",
            ],
            node: OTHERS,
            ..NONE
        },
        Id::ServerRdma => Guide {
            detail: "The servers are those of rd.ib.probe=, by default the server of a root file system over \
                     RDMA; of the servers of one disk one must answer, and the others warn. If a port is given, the server must listen on this port. ibboot sends the request after \
                     the links that the boot needs are verified. rping tests the path without that port: start \
                     rping -s on the server first.",
            causes: &[
                "The server does not listen over RDMA: rdma_cm, or the RDMA port of NFS, iSER or NVMe, is missing.",
                "A firewall drops UDP port 4791 (RoCE).",
                "The route to the server leaves through another interface.",
            ],
            node: &["ip route get SERVER", "rping -c -v -C 1 -a SERVER"],
            server: &[
                "cat /proc/fs/nfsd/portlist",
                "ls /sys/kernel/config/nvmet/ports",
                "lsmod | grep rdma_cm",
                "rping -s -v",
            ],
            ..NONE
        },
        Id::RootMounted => Guide {
            detail: "This check runs after the switch into the root file system, and only if a requested interface \
                     leads to the server that root=, netroot=, nfsroot=, rd.nvmf.discover= or a DHCP server names. With iSCSI \
                     or NVMe the file system must be on a disk of that server (a discovery controller may name \
                     another server); of several iSCSI paths one must lead to it. For a live image ibboot checks only that the root file system is a live image. \
                     For a root in memory (tmpfs) the check is unknown, because the kernel does not report the source. \
                     For an overlay that is not a live image ibboot checks the NFS mount below the overlay; without \
                     such a mount the check is skipped. rd.nvmf.discover= names the root file system unless root= or \
                     netroot= names a server: connect after the switch to servers that have only data.",
            causes: &[
                "Another server or a disk was mounted (a fallback of dracut, or of the live image).",
                "A DHCP server named another root file system than intended.",
            ],
            node: ROOT,
            ..NONE
        },
        Id::RootTransport => Guide {
            detail: "The mount options of NFS, the iSCSI session (tcp, iser) or the NVMe controller name the \
                     transport; with several controllers or sessions each of them. A live image has none.",
            causes: &[
                "The file system was mounted over another transport than requested (a fallback to TCP).",
            ],
            node: ROOT,
            ..NONE
        },
        Id::RootPath => Guide {
            detail: "Over RDMA each connection of the kernel module (rpcrdma, ib_iser, nvme_rdma) to the server \
                     uses a verified link, and connections of other programs do not count; over TCP the route to \
                     the server leads through the interface of a verified link. Of several paths to a disk one that is \
                     down only warns (multipath, a mirror of md, NVMe); a file system on several disks (LVM, md, btrfs) \
                     needs a path to each, and with redundancy (raid4, raid5, raid6, raid10, RAID of LVM and btrfs) to all \
                     but one. A named server without a path to the disk of its target warns, and so does a named \
                     target without a session, or fewer controllers than rd.nvmf.discover= names. A path to a server that no \
                     argument names does not count beside a good path to a named one. Over RDMA a \
                     connection counts from its request on, also while the kernel tries a server that does not answer: \
                     the check of the server shows that.",
            causes: &[
                "A route through another interface is preferred.",
                "NFS over RDMA closed an idle connection: nobody has used the root file system for 5 minutes.",
                "A link was repaired after the mount: the connection stays on the first one.",
                "A session of iSCSI or a controller of NVMe is lost: its state is not LOGGED_IN or live.",
            ],
            node: ROOT,
            ..NONE
        },
    }
}
