// SPDX-License-Identifier: MIT OR Apache-2.0
//! The typed arguments, each with its position on the command line.

use core::net::IpAddr;

use heapless::Vec;

use crate::bond::Bond;
use crate::complain::Complaint;
use crate::hwaddr::HwAddr;
use crate::ip::Ip;
use crate::modules::is_rdma_module;
use crate::net::Route;
use crate::redact::Shown;
use crate::selector::{Interface, Pkey};
use crate::stacked::Stacked;
use crate::token::Token;
use crate::values::{
    ClientId, ClientIdWish, Handover, Ifname, Limit, Link, ModeWish, MtuWish, Netns, NvmfDiscover,
    OnFail, PortTypeWish, Probe, RateWish, Require, RoceWish,
};

/// A value and the argument that requested it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spanned<'a, T> {
    pub value: T,
    /// Name of the source.
    pub source: &'a str,
    /// 1-based byte column of the argument in the source.
    pub column: usize,
    /// The whole argument as written.
    pub raw: &'a [u8],
}

impl<'a, T> Spanned<'a, T> {
    /// `value`, as requested by `token`.
    pub const fn new(value: T, token: &Token<'a>) -> Self {
        Self {
            value,
            source: token.source,
            column: token.column,
            raw: token.raw,
        }
    }

    /// Another value of the same argument.
    pub fn with<U>(&self, value: U) -> Spanned<'a, U> {
        Spanned {
            value,
            source: self.source,
            column: self.column,
            raw: self.raw,
        }
    }

    /// The argument without secrets, printable on one line.
    pub const fn text(&self) -> Shown<'a> {
        Shown(self.raw)
    }
}

/// Maximum of drivers of one `rd.driver.*` name, over all its arguments.
pub const DRIVERS: usize = 64;
/// Maximum of `ip=`, `ifname=`, `rd.route=` and `ib.pkey=` arguments, each, and of `vlan=`,
/// `bridge=` and `team=` arguments together.
pub const INTERFACES: usize = 32;
/// Maximum of `bond=` arguments.
pub const BONDS: usize = 4;
/// Maximum of `nameserver=` arguments.
pub const NAMESERVERS: usize = 8;
/// Maximum of arguments of one repeatable `rd.ib.*` name.
pub const WISHES: usize = 32;
/// Maximum of complaints; [`Arguments::complaints_lost`] counts the others.
pub const COMPLAINTS: usize = 64;

/// Up to `N` values, in reading order.
pub type List<'a, T, const N: usize> = Vec<Spanned<'a, T>, N>;

/// One value, the last one written.
pub type Single<'a, T> = Option<Spanned<'a, T>>;

/// Everything on the command line that ibboot understands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments<'a> {
    /// `rd.driver.*`.
    pub drivers: Drivers<'a>,
    /// `rd.neednet`.
    pub neednet: Single<'a, bool>,
    /// `rd.retry=`, in seconds.
    pub retry: Single<'a, u32>,
    /// `rd.debug`.
    pub debug: Single<'a, bool>,
    /// `rd.info`.
    pub info: Single<'a, bool>,
    /// `ip=`, `ifname=` and the other arguments about interfaces.
    pub net: Net<'a>,
    /// `root=` and the other arguments that wait for a network.
    pub root: Root<'a>,
    /// `ib.pkey=`.
    pub pkeys: List<'a, Pkey<'a>, INTERFACES>,
    /// `rd.ib` and `rd.ib.*`.
    pub ib: Ib<'a>,
    /// The invalid arguments, in reading order; those that complete an `ip=ADDRESS` come last.
    pub complaints: Vec<Complaint<'a>, COMPLAINTS>,
    /// Number of complaints beyond [`COMPLAINTS`].
    pub complaints_lost: usize,
    /// The first argument that requests InfiniBand by its name or its value alone.
    pub(crate) first_reason: Single<'a, Reason>,
}

/// `rd.driver.*`: module names in reading order, the lists of all arguments joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drivers<'a> {
    /// `rd.driver.pre=`: loaded before udev.
    pub pre: List<'a, &'a str, DRIVERS>,
    /// `rd.driver.post=`: loaded after the others.
    pub post: List<'a, &'a str, DRIVERS>,
    /// `rd.driver.blacklist=`: never loaded for a device.
    pub blacklist: List<'a, &'a str, DRIVERS>,
}

/// The arguments about interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Net<'a> {
    /// `ip=`.
    pub ip: List<'a, Ip<'a>, INTERFACES>,
    /// `ifname=`.
    pub ifname: List<'a, Ifname<'a>, INTERFACES>,
    /// `bond=`.
    pub bonds: List<'a, Bond<'a>, BONDS>,
    /// `vlan=`, `bridge=` and `team=` that name the interfaces below.
    pub stacked: List<'a, Stacked<'a>, INTERFACES>,
    /// `bootdev=`.
    pub bootdev: Single<'a, Interface<'a>>,
    /// `BOOTIF=`.
    pub bootif: Single<'a, HwAddr>,
    /// `rd.bootif`: whether `bootif` is used.
    pub use_bootif: Single<'a, bool>,
    /// `nameserver=`.
    pub nameservers: List<'a, IpAddr, NAMESERVERS>,
    /// `rd.peerdns`: whether the DHCP server's name servers are used.
    pub peerdns: Single<'a, bool>,
    /// `rd.route=`.
    pub routes: List<'a, Route<'a>, INTERFACES>,
    /// `rd.net.timeout.*`.
    pub timeouts: Timeouts<'a>,
    /// `rd.net.dhcp.*`.
    pub dhcp: Dhcp<'a>,
}

/// Those of `rd.net.timeout.*` that ibboot carries out, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeouts<'a> {
    /// `rd.net.timeout.ipv6auto=`.
    pub ipv6auto: Single<'a, u32>,
    /// `rd.net.timeout.dhcp=`.
    pub dhcp: Single<'a, Limit>,
    /// `rd.net.timeout.ip-required=`.
    pub ip_required: Single<'a, Limit>,
}

/// `rd.net.dhcp.*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dhcp<'a> {
    /// `rd.net.dhcp.retry=`.
    pub retry: Single<'a, u32>,
    /// `rd.net.dhcp.vendor-class=`.
    pub vendor_class: Single<'a, &'a str>,
    /// `rd.net.dhcp.client-id=`.
    pub client_ids: List<'a, ClientId<'a>, INTERFACES>,
}

/// The source of the root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Root<'a> {
    /// `root=`.
    pub root: Single<'a, &'a str>,
    /// `netroot=`, all of them: iSCSI has several.
    pub netroot: List<'a, &'a str, NAMESERVERS>,
    /// `nfsroot=`; it counts beside `root=/dev/nfs` only ([`Arguments::legacy_nfs`]).
    pub nfsroot: Single<'a, &'a str>,
    /// `rd.iscsi.transport=`, or `iface.transport_name=` in `rd.iscsi.param=`.
    pub iscsi_transport: Single<'a, &'a str>,
    /// `rd.nonvmf`: dracut leaves NVMe over Fabrics alone.
    pub no_nvmf: Single<'a, bool>,
    /// `rd.nvmf.discover=`; [`Arguments::nvmf_servers`] knows whether they count.
    pub nvmf_discover: List<'a, NvmfDiscover<'a>, NAMESERVERS>,
    /// The network address of an image that another program than dracut fetches into memory:
    /// `imgurl=` (xCAT), `inst.ks=`, `inst.repo=` or `inst.stage2=` (anaconda).
    pub fetched: Single<'a, &'a str>,
}

/// `rd.ib` and `rd.ib.*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ib<'a> {
    /// `rd.ib`.
    pub enabled: Single<'a, bool>,
    /// `rd.ib.mode=`.
    pub modes: List<'a, ModeWish<'a>, WISHES>,
    /// `rd.ib.mtu=`.
    pub mtus: List<'a, MtuWish<'a>, WISHES>,
    /// `rd.ib.dhcp.client-id=`.
    pub client_ids: List<'a, ClientIdWish<'a>, WISHES>,
    /// `rd.ib.link=`.
    pub links: List<'a, Link<'a>, WISHES>,
    /// `rd.ib.roce=`.
    pub roce: List<'a, RoceWish<'a>, WISHES>,
    /// `rd.ib.porttype=`.
    pub port_types: List<'a, PortTypeWish<'a>, WISHES>,
    /// `rd.ib.netns=`.
    pub netns: Single<'a, Netns>,
    /// `rd.ib.async_probe`.
    pub async_probe: Single<'a, bool>,
    /// `rd.ib.require=`.
    pub require: Single<'a, Require<'a>>,
    /// `rd.ib.rate=`.
    pub rates: List<'a, RateWish<'a>, WISHES>,
    /// `rd.ib.probe=`.
    pub probes: List<'a, Probe, WISHES>,
    /// `rd.ib.timeout=`, in seconds.
    pub timeout: Single<'a, u32>,
    /// `rd.ib.onfail=`.
    pub onfail: Single<'a, OnFail>,
    /// `rd.ib.handover=`.
    pub handover: Single<'a, Handover>,
    /// `rd.ib.kdump`.
    pub kdump: Single<'a, bool>,
}

/// Why ibboot is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `rd.ib` is on.
    Switch,
    /// An `rd.ib.*` argument other than `rd.ib.kdump`, or `ib.pkey=`, valid or not.
    Argument,
    /// `ip=`, `ifname=`, `bond=`, `vlan=`, `bridge=`, `team=`, `bootdev=` or `BOOTIF=` means an
    /// InfiniBand device.
    Interface,
    /// A network is needed and an RDMA module is requested.
    Driver,
}

impl<'a> Arguments<'a> {
    /// The argument that requests InfiniBand, if there is one.
    ///
    /// `rd.ib` decides if it is given. Otherwise these request InfiniBand: any `rd.ib.*` or
    /// `ib.pkey=`, valid or not (except `rd.ib.kdump`, which requests nothing); an `ip=`,
    /// `ifname=`, `bond=`, `vlan=`, `bridge=`, `team=`, `bootdev=` or `BOOTIF=` that means an
    /// InfiniBand device (a name that starts with `ib`, or an address that only InfiniBand has); or `rd.neednet` together with
    /// one of [`crate::RDMA_MODULES`] in `rd.driver.pre=` or `rd.driver.post=`.
    pub fn requested_by(&self) -> Single<'a, Reason> {
        if let Some(enabled) = &self.ib.enabled {
            return enabled.value.then(|| enabled.with(Reason::Switch));
        }
        let boot_device = || {
            self.net
                .bootdev
                .filter(|bootdev| bootdev.value.is_infiniband())
        };
        self.first_reason
            .or_else(|| boot_device().map(|bootdev| bootdev.with(Reason::Interface)))
            .or_else(|| self.requested_by_firmware())
            .or_else(|| self.requested_by_driver())
    }

    fn requested_by_firmware(&self) -> Single<'a, Reason> {
        let bootif = self
            .boot_interface()
            .filter(|bootif| bootif.value.is_infiniband())?;
        Some(bootif.with(Reason::Interface))
    }

    fn requested_by_driver(&self) -> Single<'a, Reason> {
        self.neednet.filter(|neednet| neednet.value)?;
        let mut drivers = self.drivers.pre.iter().chain(&self.drivers.post);
        let driver = drivers.find(|driver| is_rdma_module(driver.value))?;
        Some(driver.with(Reason::Driver))
    }

    /// `BOOTIF=`, unless `rd.bootif=0` disables it.
    pub fn boot_interface(&self) -> Single<'a, HwAddr> {
        let counts = self
            .net
            .use_bootif
            .is_none_or(|use_bootif| use_bootif.value);
        self.net.bootif.filter(|_| counts)
    }

    /// The argument because of which the boot waits for the network: of a network root file
    /// system, or of an image that is fetched into memory (`root=wwinit` of Warewulf, `imgurl=` of
    /// xCAT, anaconda's).
    pub fn waits_for_network(&self) -> Single<'a, &'a str> {
        let is_warewulf = |root: &str| root == "wwinit" || root.starts_with("wwinit:");
        let warewulf = || self.root.root.filter(|root| is_warewulf(root.value));
        self.network_root().or_else(warewulf).or(self.root.fetched)
    }

    /// The argument of a network root file system: `netroot=`, a `root=` on the network, or
    /// `rd.nvmf.discover=`.
    pub fn network_root(&self) -> Single<'a, &'a str> {
        let root = self.root.root.filter(|root| is_network_root(root.value));
        let nvmf = || {
            self.nvmf_servers()
                .last()
                .map(|discover| discover.with(discover.value.traddr))
        };
        self.root.netroot.last().copied().or(root).or_else(nvmf)
    }

    /// `rd.nvmf.discover=`, unless `rd.nonvmf` disables all of them.
    pub fn nvmf_servers(&self) -> &[Spanned<'a, NvmfDiscover<'a>>] {
        match self.root.no_nvmf {
            Some(off) if off.value => &[],
            _ => &self.root.nvmf_discover,
        }
    }

    /// `nfsroot=` beside `root=/dev/nfs`, the kernel's own spelling of an NFS root (nfsroot.rst), if it is
    /// not empty. dracut reads it before `netroot=` (parse-nfsroot.sh).
    pub fn legacy_nfs(&self) -> Single<'a, &'a str> {
        let is_legacy = self.root.root.is_some_and(|root| root.value == DEV_NFS);
        self.root
            .nfsroot
            .filter(|nfsroot| is_legacy && !nfsroot.value.is_empty())
    }
}

/// The value of `root=` that leaves the rest to `nfsroot=`, or to a DHCP server without one.
pub const DEV_NFS: &str = "/dev/nfs";

/// Whether this is `SERVER:/PATH`, the server as an IPv4 address, or `/PATH`: an NFS root without
/// `nfs:`.
pub fn is_plain_nfs(root: &str) -> bool {
    let is_device = root.starts_with("/dev/") || root.starts_with("//");
    let is_address = root.starts_with(|first: char| first.is_ascii_digit());
    (root.starts_with('/') && !is_device) || (is_address && root.contains(":/"))
}

/// Whether a value of `root=` means a network root file system. `SERVER:/PATH` and `/PATH` are NFS
/// (parse-nfsroot.sh of dracut).
fn is_network_root(root: &str) -> bool {
    const WORDS: &[&str] = &["dhcp", "dhcp6", "either6", "nbft", DEV_NFS];
    const PREFIXES: &[&str] = &[
        "nfs:",
        "nfs4:",
        "iscsi:",
        "nbd:",
        "cifs:",
        "smb:",
        "fcoe:",
        "live:http",
        "live:ftp",
        "live:nfs",
        "live:tftp",
        "http:",
        "https:",
        "ftp:",
        "tftp:",
    ];
    WORDS.contains(&root)
        || is_plain_nfs(root)
        || PREFIXES.iter().any(|prefix| root.starts_with(prefix))
}
