// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments about interfaces, and arguments that wait for a network.

use super::{Effect, Group, Origin, Parameter};

pub(super) const ADDRESSES: Group = Group {
    title: "Interfaces and addresses",
    introduction: "Existing arguments keep their meaning. Write IPv6 addresses in brackets. An interface is a \
                   name of at most 15 characters, a hardware address (see HARDWARE ADDRESSES) or, for the IPoIB interface \
                   of a port, a SELECTOR: mlx5_0/1, 0xb8599f0300fc1a2c, 0000:81:00.0 (see SELECTORS). Only ibboot \
                   understands a selector there: if the image also has a network module that reads ip=, write a name, \
                   and give the name with ifname=.",
    parameters: &[
        Parameter {
            name: "ip",
            grammar: "ip=METHOD | ip=IF:METHOD[:[MTU][:MAC]] | \
                      ip=CLIENT:[PEER]:GATEWAY:MASK:HOSTNAME:IF:METHOD[:[MTU][:MAC]] | \
                      ip=CLIENT:[PEER]:GATEWAY:MASK:HOSTNAME:IF:METHOD[:[DNS1][:DNS2][:NTP]] | ip=CLIENT",
            default: "DHCP on the boot device, or on the only bond; if neither is InfiniBand, dracut uses DHCP on \
                      every interface",
            help: "How an interface gets its addresses. May be given several times. A boot device without an ip= uses \
                   DHCP if the boot needs a network (rd.neednet=1, or a network root file system).\n\n\
                   An ip= without an interface applies to the boot device (see bootdev= and BOOTIF=), unless another \
                   ip= names that device. So does the ip= of PXELINUX (SYSAPPEND 1; dracut's network-legacy stops the \
                   boot at that argument, because it has no METHOD). If the boot device is in a bond, the ip= applies \
                   to the bond; without a boot device it applies to the only bond, if no ip= names an interface. \
                   Otherwise it may mean any interface: ibboot leaves it to the image's network module, and plan \
                   reports that.\n\n\
                   METHOD is dhcp (or on, any), dhcp6, auto6, either6, link6, single-dhcp, link-local, auto, ibft, or \
                   none (or off), which uses only the addresses in the argument. Several methods are separated by \
                   commas, and all of them are required, but of two address families, as in dhcp,dhcp6, one is enough \
                   after rd.net.timeout.ip-required=.\n\n\
                   link-local and ibft alone are left to the image's network module; beside another METHOD they have no \
                   effect. dracut halts the node at many other forms if the image has network-legacy: then write \
                   IF:METHOD with one of dhcp, on, any, dhcp6, auto6 and either6, or an address with none or off and \
                   with MASK in its own field; link6, single-dhcp and several methods need the form ip=:::::IF:METHOD.\n\n\
                   dhcp6 requests one address from a DHCPv6 server, and sets the address with a prefix of 128 bits: routers \
                   advertise the prefixes on the link and the routes. either6 uses the address of a router's prefix, \
                   and queries a DHCPv6 server if the router requests that (the M flag of its advertisement) or if no \
                   router assigned an address (see rd.net.timeout.ipv6auto=); one of the two addresses is enough. With \
                   auto6 and either6 a router's address is enough for the boot, and if the router requests that (the O \
                   flag, or the M flag) ibboot also queries a DHCPv6 server for name servers. ibboot does not read name \
                   servers in the advertisement itself (RDNSS).\n\n\
                   MASK is a netmask or a prefix length; the prefix length may also follow CLIENT after a slash. It is \
                   required: ibboot does not guess it from the address. With a MASK of 255.255.255.255 (or 128 for IPv6) \
                   the gateway is a neighbour: ibboot also sets a route to it. PEER may have a prefix length as well. MTU is \
                   in bytes. MAC, a hardware address to set, has no effect on an IPoIB interface, and plan reports that. NTP, the NTP server of the kernel's own ip=, \
                   is read, and plan reports that no program uses it. 0.0.0.0 or [::] in place of an address means an empty field. A PEER outside the network of CLIENT \
                   is not a peer but the boot server, which the kernel's own ip= has in this field.\n\n\
                   CLIENT alone, an IPv4 address, takes the other values from gateway=, netmask=, hostname=, mtu= and \
                   ksdevice= (an interface, link, bootif or ibft).\n\n\
                   An address without METHOD means none. CLIENT with another METHOD, such as dhcp, is set in addition to \
                   the address of the server.",
            example: "ip=10.0.0.5::10.0.0.1:255.255.255.0:node5:ib0:none",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "ifname",
            grammar: "ifname=NAME:ADDRESS",
            default: "the names of the kernel or of udev",
            help: "Gives the name NAME to the interface with this hardware address of 6, 8 or 20 bytes. Of 20 bytes \
                   ibboot compares only the last 8, the port GUID, because the others change from boot to boot. If \
                   NAME starts with ib, ibboot compares 6 bytes with the short form of a port GUID in firmware. May be \
                   given several times.\n\n\
                   If the image has a network module of dracut, write 6 or 20 bytes with colons: dracut halts the node at any other \
                   spelling, and dracut 049 (EL 8) also at 20 bytes.",
            example: "ifname=boot0:80:00:00:48:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:1b:2c",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "bond",
            grammar: "bond=NAME[:IF[,IF...][:OPTION=VALUE[,...][:MTU]]]",
            default: "no bond; without IF dracut's eth0,eth1",
            help: "Creates the bond NAME of several interfaces. ibboot creates the bond if one of its interfaces is an \
                   InfiniBand interface; otherwise the image's network module does. An InfiniBand IF is a name, a \
                   selector of a port, or an address of 8 or 20 bytes; an ip= with the name of \
                   the bond gives the bond its addresses.\n\n\
                   OPTION is an option of the kernel's driver (modinfo bonding); write ; between several addresses in \
                   one option, and IPv6 addresses in brackets. mode= is active-backup by default, and no other mode is possible with InfiniBand; \
                   miimon= is 100 unless miimon= or arp_interval= is given. fail_over_mac is always active. MTU \
                   applies to the bond and all its interfaces. The boot waits for the bond, not for each of its \
                   interfaces. May be given several times.",
            example: "bond=bond0:ib0,ib1:mode=active-backup,miimon=100:2044",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "vlan",
            grammar: "vlan=NAME:IF",
            default: "no VLAN",
            help: "The VLAN interface NAME on the interface IF. The kernel supports no VLAN on an InfiniBand interface or on a bond \
                   of such interfaces (NETIF_F_VLAN_CHALLENGED), so ibboot refuses the argument there. ib.pkey= creates an \
                   interface for a partition. May be given several times.",
            example: "vlan=eth0.5:eth0",
            origin: Origin::Dracut,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "bridge",
            grammar: "bridge=NAME[:IF[,IF...]]",
            default: "no bridge; without IF dracut's eth0",
            help: "The bridge NAME of several interfaces. The kernel bridges only Ethernet interfaces: ibboot refuses the \
                   argument if an IF is an InfiniBand interface. May be given several times.",
            example: "bridge=br0:eth0",
            origin: Origin::Dracut,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "team",
            grammar: "team=NAME:IF[,IF...][:RUNNER]",
            default: "no team",
            help: "The team NAME of several interfaces. ibboot creates no team, and refuses the argument if an IF is an InfiniBand \
                   interface: write bond= instead. May be given several times.",
            example: "team=team0:eth0,eth1",
            origin: Origin::Dracut,
            effect: Effect::LeftToDracut,
        },
        Parameter {
            name: "bootdev",
            grammar: "bootdev=IF",
            default: "the interface of the first ip=",
            help: "The boot device: the interface that leads to the root file system. It has precedence over BOOTIF=, which \
                   then has no effect on InfiniBand interfaces. If several InfiniBand interfaces have a default \
                   route, that of the boot device is used. \
                   An ip= without an interface applies to the boot device. If no ip= does, the boot device uses DHCP \
                   if the boot needs a network (rd.neednet=1, or a network root file system) and no ip= or bond= may \
                   name the device in another spelling; otherwise it is brought up without an address.",
            example: "bootdev=ib0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "BOOTIF",
            grammar: "BOOTIF=[TYPE-]ADDRESS",
            default: "none",
            help: "The interface that the firmware booted from, as the boot loader writes it; the boot device if \
                   bootdev= is not given. 6 bytes, 01 and 6 bytes, 20 and 6 or 8 bytes (InfiniBand firmware), 8 bytes \
                   or 20 bytes. The name may be in lower case. dracut handles the address of Ethernet firmware and \
                   treats that interface as the boot device, unless rd.bootif=0 is given.",
            example: "BOOTIF=20-b8-ce-f6-03-00-31-33-3e",
            origin: Origin::BootLoader,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.bootif",
            grammar: "rd.bootif[=0|1]",
            default: "1",
            help: "With 0, BOOTIF= is ignored.",
            example: "rd.bootif=0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "nameserver",
            grammar: "nameserver=ADDRESS",
            default: "none",
            help: "A name server, IPv4 or IPv6, with or without brackets, of every interface with addresses, whatever \
                   the method. It comes after the name servers of ip= and before those of the servers. May be given \
                   several times.",
            example: "nameserver=10.0.0.2",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.peerdns",
            grammar: "rd.peerdns[=0|1]",
            default: "1",
            help: "With 0, ibboot ignores the name servers of a DHCP server and uses only those of ip= and \
                   nameserver=.",
            example: "rd.peerdns=0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.route",
            grammar: "rd.route=NET/MASK:[GATEWAY][:IF]",
            default: "none",
            help: "A static route. GATEWAY may be empty, 0.0.0.0 or [::] if IF is given: the network is then on the link itself. May be \
                   given several times.",
            example: "rd.route=10.1.0.0/16:10.0.0.254:ib0",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
    ],
};

pub(super) const SETTINGS: Group = Group {
    title: "Network timeouts and DHCP",
    introduction: "S is a number of seconds. The deadline of ibboot is rd.ib.timeout=; the note of each argument tells \
                   whether ibboot applies the argument too.",
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
            default: "40; in ibboot 10",
            help: "How long to wait for IPv6 router advertisements. With ip=IF:either6 ibboot queries a DHCPv6 server if \
                   no router assigned an address in that time.",
            example: "rd.net.timeout.ipv6auto=60",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.timeout.dhcp",
            grammar: "rd.net.timeout.dhcp=S|infinity",
            default: "the DHCP client's own; ibboot waits until the deadline",
            help: "How long to wait for a DHCP server after the interface has carrier; for a DHCPv6 server, after it \
                   also has a link-local address.",
            example: "rd.net.timeout.dhcp=45",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.timeout.ip-required",
            grammar: "rd.net.timeout.ip-required=S|infinity",
            default: "20",
            help: "How long ibboot waits for both address families of ip=IF:dhcp,dhcp6, of dhcp,auto6 and of auto, after \
                   the interface has carrier; then one of them is enough, and the other one is a warning. With \
                   infinity both are required. If the address of the server of the root file system is in the \
                   argument, its family is always required.",
            example: "rd.net.timeout.ip-required=30",
            origin: Origin::NetworkManager,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.dhcp.retry",
            grammar: "rd.net.dhcp.retry=N",
            default: "1",
            help: "The number of DHCP tries.",
            example: "rd.net.dhcp.retry=3",
            origin: Origin::Dracut,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.dhcp.vendor-class",
            grammar: "rd.net.dhcp.vendor-class=TEXT",
            default: "none",
            help: "The vendor class for the DHCPv4 server.",
            example: "rd.net.dhcp.vendor-class=ibboot",
            origin: Origin::NetworkManager,
            effect: Effect::InfiniBand,
        },
        Parameter {
            name: "rd.net.dhcp.dscp",
            grammar: "rd.net.dhcp.dscp=CS0|CS4|CS6",
            default: "CS0",
            help: "The service class (DSCP) of the DHCP packets. The packets of ibboot always have the class CS0.",
            example: "rd.net.dhcp.dscp=CS6",
            origin: Origin::NetworkManager,
            effect: Effect::Ethernet,
        },
        Parameter {
            name: "rd.net.dhcp.client-id",
            grammar: "rd.net.dhcp.client-id=IF:HEX-HEX...|IF:@TEXT",
            default: "derived from the hardware address; see rd.ib.dhcp.client-id=",
            help: "The DHCP client identifier of the interface IF: bytes as pairs of hexadecimal digits, or text after \
                   an @. May be given several times. If the bytes begin with ff, an IAID and a DUID (RFC 4361), DHCPv6 \
                   uses both; DHCPv6 ignores any other identifier.",
            example: "rd.net.dhcp.client-id=ib0:20-00-02-c9-03-00-0a-1b-2c",
            origin: Origin::NetworkManager,
            effect: Effect::InfiniBand,
        },
    ],
};

/// One of dracut's time limits.
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
        effect: Effect::Ethernet,
    }
}

pub(super) const ROOT: Group = Group {
    title: "The root file system",
    introduction: "ibboot does not mount anything. From these arguments it derives whether the boot waits for the \
                   network, which decides the default of rd.ib.onfail=.",
    parameters: &[
        Parameter {
            name: "root",
            grammar: "root=WHAT",
            default: "none",
            help: "The root file system. The boot waits for the network if WHAT begins with nfs:, nfs4:, iscsi:, nbd:, \
                   cifs: or live:http, or is /dev/nfs, dhcp or wwinit (Warewulf). Whatever root= is, the boot also waits \
                   for the network if the command line has an imgurl= (xCAT), or an inst.ks=, inst.repo= or \
                   inst.stage2= (anaconda) that begins with http:, https:, ftp:, tftp:, nfs:, nfs4: or nfsiso:.",
            example: "root=nfs4:10.0.0.1:/srv/root:rdma,port=20049",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "netroot",
            grammar: "netroot=WHAT",
            default: "none",
            help: "The server of the root file system. The boot then always waits for the network. May be given \
                   several times.",
            example: "netroot=iscsi:10.0.0.1::::iqn.2026-11.example:root",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "nfsroot",
            grammar: "nfsroot=[SERVER:]/PATH[,OPTIONS]",
            default: "what a DHCP server names",
            help: "The root file system that root=/dev/nfs means, in the kernel's own spelling. With any other root= \
                   dracut refuses this argument and ibboot ignores it.",
            example: "nfsroot=10.0.0.1:/srv/root,vers=3",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.iscsi.transport",
            grammar: "rd.iscsi.transport=NAME",
            default: "tcp",
            help: "The transport of iSCSI. dracut does not support iser; with iser ibboot adds and loads ib_iser and \
                   makes dracut log in over RDMA. Targets are still discovered over TCP, so the node needs IPoIB. The \
                   iface field of netroot= does not select iser: dracut reads its record before the record exists.",
            example: "rd.iscsi.transport=iser",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.iscsi.param",
            grammar: "rd.iscsi.param=NAME=VALUE",
            default: "none",
            help: "A setting of open-iscsi's record of the target. ibboot reads iface.transport_name=, open-iscsi's \
                   name for rd.iscsi.transport=. May be given several times.",
            example: "rd.iscsi.param=iface.transport_name=iser",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.nvmf.discover",
            grammar: "rd.nvmf.discover=TRANSPORT,ADDRESS[,[HOST-ADDRESS][,SERVICE]]",
            default: "none",
            help: "An NVMe discovery controller. The boot waits for the network, although dracut itself does not bring \
                   up a network for rdma. May be given several times.",
            example: "rd.nvmf.discover=rdma,10.0.0.1,,4420",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.nonvmf",
            grammar: "rd.nonvmf[=0|1]",
            default: "0",
            help: "Connects to no NVMe server: rd.nvmf.discover= and the image's discovery.conf and config.json do \
                   not count.",
            example: "rd.nonvmf=1",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
    ],
};
