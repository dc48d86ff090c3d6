// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments that address interfaces, and those that wait for a network.

use super::{Effect, Group, Origin, Parameter};

pub(super) const ADDRESSES: Group = Group {
    title: "Interfaces and addresses",
    introduction: "Existing arguments keep their meaning. IPv6 addresses are written in brackets. An interface is a \
                   name of at most 15 characters or a hardware address (see HARDWARE ADDRESSES).",
    parameters: &[
        Parameter {
            name: "ip",
            grammar: "ip=METHOD | ip=IF:METHOD[:[MTU][:MAC]] | \
                      ip=CLIENT:[PEER]:GATEWAY:MASK:HOSTNAME:IF:METHOD[:[MTU][:MAC]] | \
                      ip=CLIENT:[PEER]:GATEWAY:MASK:HOSTNAME:IF:METHOD[:[DNS1][:DNS2]] | ip=CLIENT",
            default: "DHCP: of the boot device, or of a bond that is the only one; where neither is InfiniBand, by \
                      dracut on every interface",
            help: "How an interface gets its addresses. May be given several times. Without any for the boot device it \
                   asks DHCP, where a network is needed (rd.neednet=1, or a root file system on the network).\n\n\
                   One that names no interface is for the boot device (see bootdev= and BOOTIF=) as a whole, unless \
                   another ip= names that one: so is the ip= that PXELINUX writes (SYSAPPEND 1; dracut's network-legacy \
                   stops the boot at that one, because it has no METHOD). Where the boot device is in a bond \
                   it is for the bond, and without a boot device for the only bond, where no ip= names an interface. \
                   Else it may mean any interface: it is left to the image's network module, and plan says so.\n\n\
                   METHOD is dhcp (or on, any), dhcp6, auto6, either6, link6, single-dhcp, link-local, auto, ibft, or \
                   none (or off) for what is written and nothing else. Several are separated by commas and \
                   all of them wanted: dhcp,dhcp6.\n\n\
                   dhcp6 asks a DHCPv6 server for one address, which is set with a prefix of 128 bits: what is on the \
                   link and how to leave it routers advertise. either6 takes the address of a router's prefix, and \
                   asks a DHCPv6 server where the router says so (the M flag of its advertisement) or when none gave \
                   an address (see rd.net.timeout.ipv6auto=); one of the two is enough. With auto6 and either6 a \
                   router's address is enough for the boot, and where the router says so (the O flag, or the M flag) \
                   a DHCPv6 server is asked for name servers beside it. Those that stand in the advertisement itself \
                   (RDNSS) are not read.\n\n\
                   MASK is a netmask or the length of a prefix; the length may also follow CLIENT after a slash. It has \
                   to be given: it is not guessed from the address. PEER may have a prefix length as well. MTU is in \
                   bytes. MAC is an address to give to the interface. A PEER beyond the network of CLIENT is no peer \
                   but the boot server, which the kernel's own ip= has in this place.\n\n\
                   CLIENT alone, an IPv4 address, takes the rest from gateway=, netmask=, hostname=, mtu= and ksdevice= \
                   (an interface, link, bootif or ibft).\n\n\
                   Without METHOD an address is taken as none.",
            example: "ip=10.0.0.5::10.0.0.1:255.255.255.0:node5:ib0:none",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "ifname",
            grammar: "ifname=NAME:ADDRESS",
            default: "names are the kernel's or udev's",
            help: "Gives the name NAME to the interface with this hardware address of 6, 8 or 20 bytes. Of 20 bytes \
                   only the last 8, the port GUID, are compared, because the others change from boot to boot. 6 bytes are \
                   compared with what firmware makes of a port GUID where NAME starts with ib. May be given \
                   several times.",
            example: "ifname=boot0:00:02:c9:03:00:0a:1b:2c",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "bond",
            grammar: "bond=NAME[:IF[,IF...][:OPTION=VALUE[,...][:MTU]]]",
            default: "none; without IF dracut's eth0,eth1",
            help: "Makes the bond NAME of several interfaces. ibboot makes it if one of them is an InfiniBand one, and \
                   leaves it to the image's network module otherwise. An InfiniBand IF is a name, an address of 8 or \
                   20 bytes with dashes, or guid=0x and the GUID of a port; ip= with the name of the bond gives it its \
                   addresses.\n\n\
                   OPTION is one of the kernel's driver (modinfo bonding), several addresses in one have ; between \
                   them. mode= is active-backup where nothing else is written, and nothing else is possible with \
                   InfiniBand; miimon= is 100 unless it or arp_interval= is given. fail_over_mac is active, always. \
                   MTU is that of the bond and all its interfaces. The boot waits for the bond, not for each of its \
                   interfaces. May be given several times.",
            example: "bond=bond0:ib0,ib1:mode=active-backup,miimon=100:2044",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "bootdev",
            grammar: "bootdev=IF",
            default: "the interface of the first ip=",
            help: "The interface that the root file system is reached through: the boot device, before that of \
                   BOOTIF=. An ip= that names no interface is for it. Where a network is needed (rd.neednet=1, or a \
                   root file system on the network) and no ip= is for it, it asks DHCP; else it is brought up without \
                   an address.",
            example: "bootdev=ib0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "BOOTIF",
            grammar: "BOOTIF=[TYPE-]ADDRESS",
            default: "none",
            help: "The interface that the firmware booted from, and the boot device where bootdev= names none, as \
                   the boot loader writes it: 6 bytes, 01 and 6 bytes, \
                   20 and 6 or 8 bytes (InfiniBand firmware), 8 bytes or 20. The name may be in lower case. That of \
                   Ethernet firmware is dracut's, which takes that interface for the boot device: with \
                   rd.bootif=0 it does not.",
            example: "BOOTIF=20-b8-ce-f6-03-00-31-33-3e",
            origin: Origin::BootLoader,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.bootif",
            grammar: "rd.bootif[=0|1]",
            default: "1",
            help: "With 0, BOOTIF= does not count.",
            example: "rd.bootif=0",
            origin: Origin::Dracut,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "nameserver",
            grammar: "nameserver=ADDRESS",
            default: "none",
            help: "A name server, IPv4 or IPv6, in brackets or not, of every interface that has addresses, by \
                   whatever method: behind those of its own ip=, before those that its servers offer. May be given \
                   several times.",
            example: "nameserver=10.0.0.2",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.peerdns",
            grammar: "rd.peerdns[=0|1]",
            default: "1",
            help: "With 0, the name servers that a DHCP server offers are not used: only those of ip= and \
                   nameserver= are.",
            example: "rd.peerdns=0",
            origin: Origin::Dracut,
            effect: Effect::Dhcp,
        },
        Parameter {
            name: "rd.route",
            grammar: "rd.route=NET/MASK:[GATEWAY][:IF]",
            default: "none",
            help: "A static route. GATEWAY may be left empty where IF is given: the network is then on the link itself. \
                   May be given several times.",
            example: "rd.route=10.1.0.0/16:10.0.0.254:ib0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
    ],
};

pub(super) const SETTINGS: Group = Group {
    title: "Network timeouts and DHCP",
    introduction: "S is a number of seconds.",
    parameters: &[
        timeout(
            "rd.net.timeout.carrier",
            "rd.net.timeout.carrier=S",
            "10",
            "How long to wait for the carrier of an interface. IPoIB has a carrier only when the port is ACTIVE and the \
             broadcast group is joined.",
            "rd.net.timeout.carrier=60",
        ),
        timeout(
            "rd.net.timeout.iflink",
            "rd.net.timeout.iflink=S",
            "60",
            "How long to wait until an interface exists.",
            "rd.net.timeout.iflink=120",
        ),
        timeout(
            "rd.net.timeout.ifup",
            "rd.net.timeout.ifup=S",
            "20",
            "How long to wait until an interface is up.",
            "rd.net.timeout.ifup=40",
        ),
        timeout(
            "rd.net.timeout.route",
            "rd.net.timeout.route=S",
            "20",
            "How long to wait for a route.",
            "rd.net.timeout.route=40",
        ),
        timeout(
            "rd.net.timeout.ipv6dad",
            "rd.net.timeout.ipv6dad=S",
            "50",
            "How long to wait for the detection of duplicate IPv6 addresses.",
            "rd.net.timeout.ipv6dad=20",
        ),
        Parameter {
            name: "rd.net.timeout.ipv6auto",
            grammar: "rd.net.timeout.ipv6auto=S",
            default: "40; that of ibboot is 10",
            help: "How long to wait for IPv6 router advertisements. With ip=IF:either6 ibboot asks a DHCPv6 server when \
                   no router gave an address in that time.",
            example: "rd.net.timeout.ipv6auto=60",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.timeout.dhcp",
            grammar: "rd.net.timeout.dhcp=S|infinity",
            default: "the DHCP client's own; that of ibboot waits until the deadline",
            help: "How long to wait for a DHCP server, once there is carrier; for one of DHCPv6, once there is a \
                   link-local address as well.",
            example: "rd.net.timeout.dhcp=45",
            origin: Origin::Dracut,
            effect: Effect::Dhcp,
        },
        Parameter {
            name: "rd.net.timeout.ip-required",
            grammar: "rd.net.timeout.ip-required=S|infinity",
            default: "20",
            help: "How long to wait for the second address family of ip=IF:dhcp,dhcp6 after the first one is there.",
            example: "rd.net.timeout.ip-required=30",
            origin: Origin::NetworkManager,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "rd.net.dhcp.retry",
            grammar: "rd.net.dhcp.retry=N",
            default: "1",
            help: "How often DHCP is tried.",
            example: "rd.net.dhcp.retry=3",
            origin: Origin::Dracut,
            effect: Effect::Dhcp,
        },
        Parameter {
            name: "rd.net.dhcp.vendor-class",
            grammar: "rd.net.dhcp.vendor-class=TEXT",
            default: "none",
            help: "The vendor class that is sent to the DHCPv4 server.",
            example: "rd.net.dhcp.vendor-class=ibboot",
            origin: Origin::NetworkManager,
            effect: Effect::Dhcp,
        },
        Parameter {
            name: "rd.net.dhcp.dscp",
            grammar: "rd.net.dhcp.dscp=CS0|CS4|CS6",
            default: "CS0",
            help: "The service class of the DHCP packets; read as it is written.",
            example: "rd.net.dhcp.dscp=CS6",
            origin: Origin::NetworkManager,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "rd.net.dhcp.client-id",
            grammar: "rd.net.dhcp.client-id=IF:HEX-HEX...|IF:@TEXT",
            default: "made from the hardware address; see rd.ib.dhcp.client-id=",
            help: "The DHCP client identifier that is sent on the interface IF: bytes as pairs of hexadecimal digits, \
                   or text after an @. May be given several times. Of bytes that begin with ff, an IAID and a DUID (RFC \
                   4361) DHCPv6 takes both; to any other it pays no heed.",
            example: "rd.net.dhcp.client-id=ib0:20-00-02-c9-03-00-0a-1b-2c",
            origin: Origin::NetworkManager,
            effect: Effect::Dhcp,
        },
    ],
};

/// One of dracut's time limits, all alike.
const fn timeout(
    name: &'static str,
    grammar: &'static str,
    default: &'static str,
    help: &'static str,
    example: &'static str,
) -> Parameter {
    Parameter {
        name,
        grammar,
        default,
        help,
        example,
        origin: Origin::Dracut,
        effect: Effect::LeftToDracut,
    }
}

pub(super) const ROOT: Group = Group {
    title: "The root file system",
    introduction: "ibboot does not mount anything. It reads these arguments to know who waits for the network, which \
                   decides the default of rd.ib.onfail=.",
    parameters: &[
        Parameter {
            name: "root",
            grammar: "root=WHAT",
            default: "none",
            help: "The root file system. One that begins with nfs:, nfs4:, iscsi:, nbd:, cifs: or live:http, or is \
                   /dev/nfs or dhcp, waits for the network. So do wwinit (Warewulf) and, whatever root= is, an \
                   imgurl= (xCAT) and an inst.ks=, inst.repo= or inst.stage2= (anaconda) that begins with http:, \
                   https:, ftp:, tftp: or nfs:.",
            example: "root=nfs4:10.0.0.1:/srv/root:rdma,port=20049",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "netroot",
            grammar: "netroot=WHAT",
            default: "none",
            help: "The server of the root file system; always waits for the network. May be given several times.",
            example: "netroot=iscsi:10.0.0.1::::iqn.2026-11.example:root",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.iscsi.transport",
            grammar: "rd.iscsi.transport=NAME",
            default: "tcp",
            help: "What carries iSCSI. With iser, which dracut has no support for, ibboot installs and loads ib_iser and \
                   has dracut log in over RDMA; targets are still discovered over TCP, so the node needs IPoIB. The iface \
                   field of netroot= does not do it: dracut looks its record up before there is one.",
            example: "rd.iscsi.transport=iser",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.iscsi.param",
            grammar: "rd.iscsi.param=NAME=VALUE",
            default: "none",
            help: "A setting of open-iscsi's record of the target. ibboot reads iface.transport_name=, which is \
                   rd.iscsi.transport= in open-iscsi's words. May be given several times.",
            example: "rd.iscsi.param=iface.transport_name=iser",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.nvmf.discover",
            grammar: "rd.nvmf.discover=TRANSPORT,ADDRESS[,[HOST-ADDRESS][,SERVICE]]",
            default: "none",
            help: "An NVMe discovery controller. It waits for the network, though dracut itself does not bring one up \
                   for rdma. May be given several times.",
            example: "rd.nvmf.discover=rdma,10.0.0.1,,4420",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
    ],
};
