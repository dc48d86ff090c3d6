// SPDX-License-Identifier: MIT OR Apache-2.0
//! ibboot's own arguments, drivers, and waiting.

use super::{Effect, Group, Origin, Parameter};

pub(super) const GROUP: Group = Group {
    title: "InfiniBand and RoCE",
    introduction: "Arguments that only ibboot reads, and ib.pkey=. ibboot reports a name that begins with rd.ib. and \
                   is not listed here.",
    parameters: &[
        Parameter {
            name: "rd.ib",
            grammar: "rd.ib[=0|1]",
            default: "on if another argument requests InfiniBand, otherwise off",
            help: "Turns ibboot on or off. With 0 ibboot does nothing, whatever the other arguments request. With 1 it \
                   works even if no other argument requests InfiniBand.\n\n\
                   Without this argument ibboot works if the command line has one of these: an argument that begins \
                   with rd.ib. (except rd.ib.kdump, which requests nothing); ib.pkey=; an ip=, ifname=, bond=, vlan=, \
                   bridge=, team=, bootdev= or BOOTIF= that means an InfiniBand device (a name that starts with ib, mlx5_0/1, a PCI address, an address of 8 or \
                   20 bytes, or an address with the hardware type 20 in front), even if the rest of an ip=, ifname= or \
                   bond= is invalid; or rd.neednet=1 together with an RDMA module in rd.driver.pre= or \
                   rd.driver.post=. Otherwise ibboot prints nothing and starts nothing.",
            example: "rd.ib=0",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.link",
            grammar: "rd.ib.link=NAME:rxe|siw:NETDEV",
            default: "no software device",
            help: "Creates the RDMA device NAME in software, on the network interface NETDEV: Soft-RoCE with rxe, \
                   Soft-iWARP with siw. ibboot waits for NETDEV and brings it up first. May be given several times.",
            example: "rd.ib.link=rxe0:rxe:eth0",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.porttype",
            grammar: "rd.ib.porttype=SELECTOR:ib|eth|auto",
            default: "the type stored on the card",
            help: "Sets the type of a port of a ConnectX-3 card (mlx4): InfiniBand, Ethernet, or sensed from the \
                   cable. Cards of the mlx5 driver keep their type in firmware; for these ibboot reports that it \
                   cannot meet the argument. May be given several times.",
            example: "rd.ib.porttype=pci=0000:81:00.0:ib",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.roce",
            grammar: "rd.ib.roce=[SELECTOR:]v1|v2",
            default: "the kernel's, v2 if the device supports it",
            help: "The default RoCE mode of connections on a port, or on all ports but those of iWARP cards. Has no effect on a port whose \
                   link layer is InfiniBand. May be given several times; the last one that matches a port applies.",
            example: "rd.ib.roce=mlx5_0:1:v2",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.netns",
            grammar: "rd.ib.netns=exclusive|shared",
            default: "the kernel's mode is not changed (shared, or the parameter netns_mode of ib_core)",
            help: "Which network namespaces (containers) see the RDMA devices: with exclusive each device is in one \
                   network namespace, with shared all see all devices. Set as soon as ib_core is loaded, because the \
                   kernel refuses a change while other network namespaces exist.",
            example: "rd.ib.netns=exclusive",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.mode",
            grammar: "rd.ib.mode=[IF:]auto|connected|datagram",
            default: "the kernel's mode is not changed",
            help: "The IPoIB mode of the interface IF, or of all interfaces: those that the command line names, those \
                   of the ports that rd.ib.require= lists, and those of every port if rd.ib.require= is all or a \
                   number or if no interface is named. auto selects connected if the device supports it, otherwise \
                   datagram, and reports the choice. connected on a device without connected mode (ConnectX-4 and \
                   later with enhanced IPoIB, or a kernel without CONFIG_INFINIBAND_IPOIB_CM) is an error with the \
                   reason; ibboot never falls back to datagram silently. May be given several times: the last one with \
                   IF applies to that interface, otherwise the last one without IF, in whatever order they are given.",
            example: "rd.ib.mode=ib0:auto",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.mtu",
            grammar: "rd.ib.mtu=[IF:]N|max",
            default: "the kernel's MTU is not changed",
            help: "The MTU of the IPoIB interface IF, or of all interfaces (as with rd.ib.mode=): N bytes from 68 to \
                   65535, or the maximum of the mode and the broadcast group (65520 in connected mode, mostly 2044 or \
                   4092 in datagram mode). An MTU in ip= or bond= has precedence. May be given several times: the last \
                   one with IF applies to that interface, otherwise the last one without IF, in whatever order they are \
                   given.",
            example: "rd.ib.mtu=max",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.dhcp.client-id",
            grammar: "rd.ib.dhcp.client-id=[IF:]firmware|guid|port-guid|ipxe",
            default: "firmware",
            help: "The DHCP client identifier of the InfiniBand interface IF, or of all interfaces. firmware: the \
                   identifier of FlexBoot and of older UEFI drivers of the card, ff:00:00:00:00:00:02:00:00:02:c9:00 and \
                   the port GUID, so that one reservation fits that firmware and ibboot. If several interfaces of a port use DHCP, one of them \
                   sends that identifier: the port's own interface, otherwise the boot device, otherwise the first. The others send it with \
                   their P_Key as IAID, in the fourth and fifth byte: ff:00:00:80:01:00:02:... for ib0.8001. guid: 20 and the port GUID, the identifier of the \
                   ISC and NetworkManager clients. port-guid: the port GUID alone, as in the entries of xCAT's makedhcp. \
                   ipxe: 01 and the port GUID without its two middle bytes, the identifier of iPXE. rd.net.dhcp.client-id= has precedence. May be given several times: \
                   the last one with IF applies to that interface, otherwise the last one without IF. With each word the DUID of DHCPv6 is 00:03:00:20 \
                   and the port GUID (RFC 8415 11.4), and the IAID is the P_Key with its membership bit: 65535 without \
                   a partition.\n\n\
                   A bond uses the port GUID of the first interface that bond= names, whichever interface carries the \
                   traffic, so a failover changes no address. If that interface is not in the bond 10 s after the bond \
                   has carrier, the bond uses the port GUID of the first interface in it.",
            example: "rd.ib.dhcp.client-id=ib0:guid",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "ib.pkey",
            grammar: "ib.pkey=PARENT.PKEY",
            default: "no child interface",
            help: "Creates an IPoIB child interface for a partition. PKEY has up to four hexadecimal digits, with or \
                   without 0x. The kernel always uses the P_Key with full membership: ib0.0004 and ib0.8004 are the \
                   same partition, 0x8004. 0 and 8000 are not allowed. NetworkManager reads this argument too. May be \
                   given several times.",
            example: "ib.pkey=ib0.8004",
            origin: Origin::NetworkManager,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.require",
            grammar: "rd.ib.require=[ib:|eth:]all|any|N[,-SELECTOR...]|SELECTOR[,SELECTOR...]",
            default: "all ports that the command line names; if it names none, any one port",
            help: "The ports that must be verified before the boot continues: every one, any one, any N, or exactly \
                   the selected ones (16 at most). ibboot also brings up a port that is not required, and only \
                   reports its failure. The Ethernet interface of a port that is named, or that counts for all or \
                   eth:, is set up, since a RoCE port is ACTIVE only then. If a list has an invalid selector, the valid ones stay required; ibboot \
                   reports what an invalid value leaves required.\n\n\
                   all means every HCA on the PCI bus, with or without an RDMA device: an HCA whose driver is not \
                   loaded or did not bind it fails, also after boot. HCAs are PCI functions of the classes 0207 and \
                   0c06 and other InfiniBand and Omni-Path cards, also in flash recovery, and functions of the same \
                   model as one that has an RDMA device. The Data Direct function of a ConnectX-8, a function of an NVSwitch, an Ethernet controller (class 0200) without an RDMA device, a virtual function, a \
                   function that another driver has (vfio-pci) and an HCA whose driver is blacklisted do not count. \
                   -SELECTOR excludes ports or an HCA, such as a spare without a cable; pci= also excludes an HCA \
                   without an RDMA device. A selector that no port of the machine has excludes nothing: a GUID or a \
                   PCI address stays right when udev renames a device, and one command line may name the spare ports \
                   of all nodes (64 selectors at most).\n\n\
                   With ib: only InfiniBand ports count, with eth: only Ethernet ports (RoCE, iWARP); ib and eth alone \
                   are ib:any and eth:any. A port that is neither (EFA) counts only where neither is requested. Without ib: and eth:, InfiniBand ports count if the command line requests IPoIB \
                   or ib_ipoib, or if the machine has an InfiniBand card. Ports of both kinds count if the command line \
                   has rd.ib.link=, rd.ib.roce= or a port type eth, or if the machine has no InfiniBand card. \
                   rd.ib.mode= and rd.ib.mtu= without an interface never request IPoIB of an Ethernet port.\n\n\
                   For any and N the two functions of a Socket Direct card count once if they share an InfiniBand port, as do \
                   virtual functions that a host gave to this machine. A virtual function or a sub-function of a card of \
                   this machine itself does not count. After boot \
                   the ports count that were verified in the initramfs; if one of them fails, another port may count \
                   in its place, and the failed one is a warning. all also means every port that was found in the \
                   initramfs. A port that joins a RoCE bond after the handover still counts while the device of the bond \
                   is ACTIVE and the port's own interface in the bond has carrier.",
            example: "rd.ib.require=mlx5_0:1,mlx5_1:1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.rate",
            grammar: "rd.ib.rate=[SELECTOR=]GBPS",
            default: "any rate",
            help: "A port slower than GBPS gigabits per second is not verified. Decimals are allowed: 2.5 is the \
                   slowest rate of InfiniBand. May be given several times; the last one that matches a port applies. \
                   If SELECTOR matches no port of the machine, ibboot check reports an invalid argument. \
                   Without a rate, ibboot warns of an InfiniBand port that is slower than the other ports of the same model of \
                   card in its subnet.",
            example: "rd.ib.rate=mlx5_0:1=100",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.probe",
            grammar: "rd.ib.probe=ADDR[:PORT]",
            default: "the server of a root file system over RDMA, if its address is given; of the servers of one disk any one",
            help: "An address that must answer over RDMA and, with PORT, a service that must listen there. A host that \
                   answers only over TCP fails the probe. Write an IPv6 address in brackets if a port follows. May be \
                   given several times. ibboot probes the addresses as soon as the links are verified, and the boot \
                   waits for the answers as it waits for links.",
            example: "rd.ib.probe=10.0.0.1:20049",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.timeout",
            grammar: "rd.ib.timeout=S",
            default: "rd.retry=, otherwise 180",
            help: "The deadline: after S seconds (at least 1) ibboot gives up, reports what is still missing and why, \
                   and does what rd.ib.onfail= requests. The deadline is one for all links together. dracut's own \
                   queue waits at least this long, even if its limit is shorter.",
            example: "rd.ib.timeout=300",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.onfail",
            grammar: "rd.ib.onfail=shell|continue|reboot",
            default: "continue; for a network root, dracut then waits for the root file system and ends in its own \
                      emergency shell",
            help: "The action if required ports are not verified at the deadline, or as soon as waiting cannot \
                   verify them: a driver that is not in the image, a mode that the card does not support, DHCP after its \
                   last try. shell: dracut's emergency shell, \
                   with the reason on the console; with rd.shell=0 dracut stops the node instead (rd.emergency=). \
                   continue: the boot continues and the failure is reported. reboot: the console shows the reason for \
                   10 to 40 s, then the node reboots.",
            example: "rd.ib.onfail=continue",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.handover",
            grammar: "rd.ib.handover=auto|keep|nm|networkd|none",
            default: "auto",
            help: "The owner, in the real root, of the IPoIB interfaces that the command line requests. auto: no \
                   program owns the verified interfaces to which ibboot gave an address, the parents of those that \
                   are child interfaces, or the interfaces of verified bonds. These interfaces keep their configuration \
                   (NetworkManager would take an interface down to reconfigure it, and a root file system on it would \
                   hang). The network program of the real root, such as NetworkManager, owns all other interfaces. keep: no program owns any of them, verified or not. nm, \
                   networkd: NetworkManager or systemd-networkd, which gets a profile with the mode, the MTU, the \
                   addresses, the gateway, the name servers, the host name of ip=, rd.net.dhcp.vendor-class= and \
                   rd.peerdns=0; the other one leaves the interfaces alone. none: \
                   ibboot configures neither NetworkManager nor systemd-networkd.\n\n\
                   The configuration of the real root is in files below /run until the next boot. In the \
                   initramfs NetworkManager and systemd-networkd leave the InfiniBand interfaces alone if the command line requests one of \
                   them, except an interface whose ip= is left to them.",
            example: "rd.ib.handover=nm",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.kdump",
            grammar: "rd.ib.kdump[=0|1]",
            default: "0",
            help: "In a kernel that saves the dump of a crashed one (/proc/vmcore exists) ibboot does nothing, \
                   whatever the other arguments request: a failed link must not keep the kernel from writing the dump, \
                   and the memory of that kernel is small. With 1 ibboot brings up what the command line requests, for \
                   a dump over IPoIB, with as little as a link needs: only the driver of the one HCA that the \
                   selectors of the required ports mean, if they identify one; no ib_umad, ib_uverbs and rdma_ucm, \
                   even if rd.driver.pre= or rd.driver.post= names them; no request to a server. rd.ib.onfail= is \
                   ignored: after a failure kdump continues and does its default action for a missing target. The \
                   kdump image must include ibboot, which the image builder must request (see ibboot.dracut(7)). In every \
                   other kernel this argument has no effect.",
            example: "rd.ib.kdump=1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
    ],
};

pub(super) const DRIVERS: Group = Group {
    title: "Drivers",
    introduction: "Write module parameters as MODULE.PARAM=VALUE; modprobe applies them.",
    parameters: &[
        Parameter {
            name: "rd.driver.pre",
            grammar: "rd.driver.pre=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that are loaded first, before udev handles the devices. May be given several times.",
            example: "rd.driver.pre=mlx5_core",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.driver.post",
            grammar: "rd.driver.post=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that are loaded after those that the devices need. dracut itself loads them only once its \
                   queue is idle; ibboot loads the RDMA modules among them at once. May be given several times.",
            example: "rd.driver.post=mlx5_ib,ib_ipoib,ib_umad,rdma_ucm",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.driver.blacklist",
            grammar: "rd.driver.blacklist=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that are not loaded automatically for a device. A module that rd.driver.pre= or \
                   rd.driver.post= names is loaded nevertheless. May be given several times.",
            example: "rd.driver.blacklist=mlx4_en",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.async_probe",
            grammar: "rd.ib.async_probe[=0|1]",
            default: "0",
            help: "With 1, the HCAs of one driver are probed in parallel, not one after another: a node with eight \
                   HCAs waits for one of them, not for eight, and a card whose firmware is not ready does not hold \
                   up the others. Off by default: the kernel then numbers mlx5_0 and ib0 in the order in which the \
                   HCAs are ready, also for the real root, and not every driver supports parallel probing equally \
                   well. ibboot warns of static addresses on ib0, ib1, ... of a machine with several HCAs. With several \
                   Ethernet cards, write their number in place of rd.ib.require=all, which does not wait for an \
                   Ethernet card that is still being probed.",
            example: "rd.ib.async_probe=1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
    ],
};

pub(super) const WAITING: Group = Group {
    title: "Waiting and messages",
    introduction: "The limits of dracut's own queue, which runs in parallel with ibboot.",
    parameters: &[
        Parameter {
            name: "rd.retry",
            grammar: "rd.retry=S",
            default: "180",
            help: "Seconds that dracut's queue waits for devices and for the network before it gives up. Also the \
                   deadline of ibboot, unless S is 0 or rd.ib.timeout= is given.",
            example: "rd.retry=160",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.timeout",
            grammar: "rd.timeout=S",
            default: "0, no limit",
            help: "Seconds that systemd waits for a block device. This argument does not change the deadline of \
                   ibboot, and 0 does not remove that deadline.",
            example: "rd.timeout=0",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.neednet",
            grammar: "rd.neednet[=0|1]",
            default: "0",
            help: "The boot needs a network even if the root file system is local. Together with an RDMA module in \
                   rd.driver.pre= or rd.driver.post= this argument turns ibboot on.",
            example: "rd.neednet=1",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.debug",
            grammar: "rd.debug[=0|1]",
            default: "0",
            help: "Logs every step of ibboot and of dracut's scripts.",
            example: "rd.debug",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.info",
            grammar: "rd.info[=0|1]",
            default: "0",
            help: "Shows all log messages on the console, even with quiet.",
            example: "rd.info",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
    ],
};
