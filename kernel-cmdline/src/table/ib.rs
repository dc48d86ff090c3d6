// SPDX-License-Identifier: MIT OR Apache-2.0
//! ibboot's own arguments, drivers, and waiting.

use super::{Effect, Group, Origin, Parameter};

pub(super) const GROUP: Group = Group {
    title: "InfiniBand and RoCE",
    introduction: "Arguments that only ibboot reads, and ib.pkey=. A name that begins with rd.ib. and is not \
                   listed here is reported.",
    parameters: &[
        Parameter {
            name: "rd.ib",
            grammar: "rd.ib[=0|1]",
            default: "on when another argument asks for InfiniBand, else off",
            help: "Turns ibboot on or off. With 0 it does nothing at all, whatever else is written. With 1 it works \
                   even if nothing else asks for it.\n\n\
                   Without this argument ibboot works when one of these is there: an argument that begins with \
                   rd.ib. (rd.ib.kdump alone asks for nothing); ib.pkey=; an ip=, ifname=, bond=, bootdev= or BOOTIF= that means an InfiniBand device (a name that \
                   starts with ib, an address of 8 or 20 bytes or with the hardware type 20 in front), even if an ip=, ifname= \
                   or bond= is wrong otherwise; or rd.neednet=1 \
                   together with an RDMA module in rd.driver.pre= or rd.driver.post=. Otherwise it prints nothing and \
                   starts nothing.",
            example: "rd.ib=0",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.link",
            grammar: "rd.ib.link=NAME:rxe|siw:NETDEV",
            default: "no software device is made",
            help: "Makes the RDMA device NAME in software, on the network interface NETDEV: Soft-RoCE with rxe, \
                   Soft-iWARP with siw. NETDEV is brought up first and waited for. May be given several times.",
            example: "rd.ib.link=rxe0:rxe:eth0",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.porttype",
            grammar: "rd.ib.porttype=SELECTOR:ib|eth|auto",
            default: "as the card has it stored",
            help: "Sets the type of a port of a ConnectX-3 card (mlx4): InfiniBand, Ethernet, or sensed from the cable. \
                   Cards of the mlx5 driver keep their type in firmware; there the argument is reported as one that \
                   cannot be met. May be given several times.",
            example: "rd.ib.porttype=pci=0000:81:00.0:ib",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.roce",
            grammar: "rd.ib.roce=[SELECTOR:]v1|v2",
            default: "the kernel's, v2 where the device can",
            help: "The RoCE version that connections use by default on a port, or on all of them. Has no meaning on a \
                   port whose link layer is InfiniBand. May be given several times; the last one that means a port \
                   counts.",
            example: "rd.ib.roce=mlx5_0:1:v2",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.mode",
            grammar: "rd.ib.mode=[IF:]auto|connected|datagram",
            default: "the kernel's own mode is left alone",
            help: "The IPoIB mode of the interface IF, or of all: those that are named, those of the ports that \
                   rd.ib.require= lists, and of every port where it has all or a number or where nothing is named. \
                   auto takes connected where the device can, else \
                   datagram, and says which. connected on a device that cannot (ConnectX-4 and later with enhanced \
                   IPoIB, or a kernel without CONFIG_INFINIBAND_IPOIB_CM) is an error that says why; it never turns \
                   into datagram silently. May be given several times; the last one that means an interface counts.",
            example: "rd.ib.mode=ib0:connected",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.mtu",
            grammar: "rd.ib.mtu=[IF:]N|max",
            default: "the kernel's own MTU is left alone",
            help: "The MTU of the IPoIB interface IF, or of all (as with rd.ib.mode=): N bytes from 68 to 65535, or as much as the mode and \
                   the broadcast group allow (65520 in connected mode, mostly 2044 or 4092 in datagram mode). An MTU in \
                   ip= goes before it. May be given several times; the last one that means an interface counts.",
            example: "rd.ib.mtu=max",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.dhcp.client-id",
            grammar: "rd.ib.dhcp.client-id=[IF:]firmware|guid",
            default: "firmware",
            help: "The DHCP client identifier of the InfiniBand interface IF, or of all. firmware: what FlexBoot and the \
                   UEFI driver of the card send, ff:00:00:00:00:00:02:00:00:02:c9:00 and the port GUID, so that one \
                   reservation fits both. guid: 20 and the port GUID, as the ISC and NetworkManager clients send it. \
                   rd.net.dhcp.client-id= goes before it. May be given several times; the last one that means an \
                   interface counts. The DUID of DHCPv6 is 00:03:00:20 and the port GUID (RFC 8415 \
                   11.4) with either word, and its IAID the P_Key with its membership bit: 65535 without a \
                   partition.\n\n\
                   The port GUID of a bond is that of the first interface that bond= names, whichever carries the \
                   traffic, so that a failover changes no address. Where that interface is not in the bond 10 s \
                   after the bond has carrier, it is that of the first one that is.",
            example: "rd.ib.dhcp.client-id=ib0:guid",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "ib.pkey",
            grammar: "ib.pkey=PARENT.PKEY",
            default: "no child interface is made",
            help: "Makes an IPoIB child interface for a partition. PKEY has up to four hexadecimal digits, with or \
                   without 0x. The kernel always takes the P_Key as a full member's: ib0.0004 and ib0.8004 are the same \
                   partition, 0x8004. 0 and 8000 are not allowed. NetworkManager knows this argument too. May be given \
                   several times.",
            example: "ib.pkey=ib0.8004",
            origin: Origin::NetworkManager,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.require",
            grammar: "rd.ib.require=all|any|N|SELECTOR[,SELECTOR]",
            default: "all ports that the command line names; if it names none, any one port",
            help: "Which ports must be verified before the boot goes on: every port found, one of them, N of them, or \
                   exactly those selected (16 at most). A port that is not required is brought up all the same, and a \
                   failure there is only reported. Of a list with a wrong selector the right ones are required.",
            example: "rd.ib.require=mlx5_0:1,mlx5_1:1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.rate",
            grammar: "rd.ib.rate=[SELECTOR=]GBPS",
            default: "any rate will do",
            help: "A port that is slower than GBPS gigabits per second is not verified. Decimals are allowed: 2.5 is \
                   the slowest rate of InfiniBand. May be given several times; the last one that means a port counts.",
            example: "rd.ib.rate=mlx5_0:1=100",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.probe",
            grammar: "rd.ib.probe=ADDR[:PORT]",
            default: "the server of a root file system that goes by RDMA, where its address is given",
            help: "An address that has to answer over RDMA and, with PORT, a service that has to listen there. A host \
                   that only answers TCP does not count. An IPv6 address is written in brackets when a port follows. \
                   May be given several times. They are asked as soon as the links are verified, and the boot waits \
                   for their answers as it does for links.",
            example: "rd.ib.probe=10.0.0.1:20049",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.timeout",
            grammar: "rd.ib.timeout=S",
            default: "rd.retry=, else 180",
            help: "After S seconds (at least 1) ibboot gives up, says what is still missing and why, and does what \
                   rd.ib.onfail= says. The time counts for everything together. dracut's own queue is kept waiting as \
                   long as this if its limit is shorter.",
            example: "rd.ib.timeout=300",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.onfail",
            grammar: "rd.ib.onfail=shell|continue|reboot",
            default: "continue; where the root file system comes over the network, dracut then waits for that and ends in its own \
                      emergency shell",
            help: "What happens when required ports are not verified in time. shell: dracut's emergency shell, with \
                   the reason on the console. continue: the boot goes on and the failure is reported. reboot: the \
                   reason is shown for ten seconds, then the node reboots.",
            example: "rd.ib.onfail=continue",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.handover",
            grammar: "rd.ib.handover=auto|keep|nm|networkd|none",
            default: "auto",
            help: "Who owns the IPoIB interfaces in the real root that ibboot was asked for. auto: nobody, an \
                   interface that was verified stays as it is, because NetworkManager would take it down to set it \
                   up again, and a root file system on it would hang; one that was not verified is left to whoever \
                   manages the network. keep: the same for all of them, verified or not. nm, networkd: \
                   NetworkManager or systemd-networkd, which gets a profile with the mode, the MTU, the addresses \
                   and the gateway; the other one leaves them alone. none: neither is told anything.\n\n\
                   What they are told stands in files below /run, until the next boot. Whatever is given here, \
                   in the initramfs both leave all InfiniBand interfaces alone as soon as ibboot is asked for one.",
            example: "rd.ib.handover=nm",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.kdump",
            grammar: "rd.ib.kdump[=0|1]",
            default: "0",
            help: "In a kernel that saves the dump of one that crashed (/proc/vmcore is there) ibboot does nothing, \
                   whatever else is written: links that do not come up must not keep the dump from being written, and \
                   the memory of that kernel is small. With 1 it brings up what the command line asks for, for a dump \
                   that goes over IPoIB, and then with as little as a link needs: the driver of the one HCA that the \
                   selectors of the wanted ports mean, where they tell it; not ib_umad, ib_uverbs and rdma_ucm, even if \
                   rd.driver.pre= or rd.driver.post= names them; no question to a server. rd.ib.onfail= does not count: \
                   after a failure kdump goes on, and does what it is told to do without a target. The image for kdump \
                   must have ibboot in it, which an image builder has to ask for (see ibboot(8)). In every other kernel \
                   this argument has no effect.",
            example: "rd.ib.kdump=1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
    ],
};

pub(super) const DRIVERS: Group = Group {
    title: "Drivers",
    introduction: "Parameters of a module are written as MODULE.PARAM=VALUE; modprobe applies them.",
    parameters: &[
        Parameter {
            name: "rd.driver.pre",
            grammar: "rd.driver.pre=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that are loaded first, before udev looks at the devices. May be given several times.",
            example: "rd.driver.pre=mlx5_core",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.driver.post",
            grammar: "rd.driver.post=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that are loaded after those that the devices ask for. dracut itself loads them only once its \
                   queue is idle; ibboot loads those of RDMA as soon as devices can be looked at. May be given several \
                   times.",
            example: "rd.driver.post=mlx5_ib,ib_ipoib,ib_umad,rdma_ucm",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.driver.blacklist",
            grammar: "rd.driver.blacklist=MODULE[,MODULE...]",
            default: "none",
            help: "Modules that no device may load by itself. A module that is also asked for by name is reported. May \
                   be given several times.",
            example: "rd.driver.blacklist=mlx4_en",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.ib.async_probe",
            grammar: "rd.ib.async_probe[=0|1]",
            default: "0",
            help: "With 1, the HCAs of one driver are probed side by side and not one after another: a node with eight \
                   HCAs waits for one of them, not for eight. Off by default because drivers differ in how well they \
                   take it.",
            example: "rd.ib.async_probe=1",
            origin: Origin::Ibboot,
            effect: Effect::CarriedOut,
        },
    ],
};

pub(super) const WAITING: Group = Group {
    title: "Waiting and messages",
    introduction: "What dracut's own loop does while ibboot works beside it.",
    parameters: &[
        Parameter {
            name: "rd.retry",
            grammar: "rd.retry=S",
            default: "180",
            help: "Seconds that dracut's queue waits for devices and for the network before it gives up. Also the \
                   deadline of ibboot, unless rd.ib.timeout= gives another.",
            example: "rd.retry=160",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.timeout",
            grammar: "rd.timeout=S",
            default: "0, which is for ever",
            help: "Seconds that systemd waits for a block device. It does not move the deadline of ibboot, and 0 does \
                   not lift it.",
            example: "rd.timeout=0",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.neednet",
            grammar: "rd.neednet[=0|1]",
            default: "0",
            help: "A network is needed even if the root file system is not reached over one. Together with an RDMA \
                   module in rd.driver.pre= or rd.driver.post= it turns ibboot on.",
            example: "rd.neednet=1",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.debug",
            grammar: "rd.debug[=0|1]",
            default: "0",
            help: "Every step is logged, ibboot's and those of dracut's scripts.",
            example: "rd.debug",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
        Parameter {
            name: "rd.info",
            grammar: "rd.info[=0|1]",
            default: "0",
            help: "What is done is shown on the console even if quiet is given.",
            example: "rd.info",
            origin: Origin::Dracut,
            effect: Effect::CarriedOut,
        },
    ],
};
