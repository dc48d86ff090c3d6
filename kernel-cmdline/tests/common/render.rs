// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments as text: one line for each value, complaint and reason.

use std::fmt::{Debug, Write};

use kernel_cmdline::{
    Arguments, FULL_MEMBER, Interface, Ip, Limit, List, Mtu, Number, Require, Selector, Single,
    Spanned,
};

pub fn render(arguments: &Arguments<'_>) -> String {
    let mut page = Page(String::new());
    let Arguments {
        drivers,
        net,
        root,
        ib,
        ..
    } = arguments;
    page.list("rd.driver.pre", &drivers.pre, |name| name.to_string());
    page.list("rd.driver.post", &drivers.post, |name| name.to_string());
    page.list("rd.driver.blacklist", &drivers.blacklist, |name| {
        name.to_string()
    });
    page.single("rd.neednet", &arguments.neednet, bool::to_string);
    page.single("rd.retry", &arguments.retry, u32::to_string);
    page.single("rd.debug", &arguments.debug, bool::to_string);
    page.single("rd.info", &arguments.info, bool::to_string);
    page.list("ip", &net.ip, ip);
    page.list("ifname", &net.ifname, |ifname| {
        format!("{} = {}", ifname.name, ifname.address)
    });
    page.list("bond", &net.bonds, |bond| {
        let slaves: Vec<_> = bond.slaves.iter().map(interface).collect();
        let options: Vec<_> = bond
            .options
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        let mtu = bond
            .mtu
            .map(|mtu| format!(" mtu {mtu}"))
            .unwrap_or_default();
        format!(
            "{} of {}{}{mtu}",
            bond.name,
            slaves.join(" and "),
            options.concat()
        )
    });
    page.single("bootdev", &net.bootdev, interface);
    page.single("BOOTIF", &net.bootif, |address| match address.guid() {
        Some(guid) => format!("{address} (GUID {guid})"),
        None => address.to_string(),
    });
    page.single("rd.bootif", &net.use_bootif, bool::to_string);
    page.list("nameserver", &net.nameservers, ToString::to_string);
    page.single("rd.peerdns", &net.peerdns, bool::to_string);
    page.list("rd.route", &net.routes, |route| {
        let via = route
            .gateway
            .map(|gateway| format!(" via {gateway}"))
            .unwrap_or_default();
        let dev = route
            .interface
            .map(|name| format!(" dev {}", interface(&name)))
            .unwrap_or_default();
        format!("{}/{}{via}{dev}", route.network, route.prefix)
    });
    let timeouts = &net.timeouts;
    page.single(
        "rd.net.timeout.ipv6auto",
        &timeouts.ipv6auto,
        u32::to_string,
    );
    page.single("rd.net.timeout.dhcp", &timeouts.dhcp, limit);
    page.single("rd.net.timeout.ip-required", &timeouts.ip_required, limit);
    page.single("rd.net.dhcp.retry", &net.dhcp.retry, u32::to_string);
    page.single("rd.net.dhcp.vendor-class", &net.dhcp.vendor_class, |text| {
        text.to_string()
    });
    page.list("rd.net.dhcp.client-id", &net.dhcp.client_ids, |id| {
        let bytes: Vec<_> = id.id.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{} = {}", interface(&id.interface), bytes.join(" "))
    });
    page.list("stacked", &net.stacked, |stacked| {
        let below: Vec<_> = stacked.below.iter().map(interface).collect();
        format!(
            "{} {} on {}",
            stacked.kind,
            stacked.name,
            below.join(" and ")
        )
    });
    page.list("ib.pkey", &arguments.pkeys, |pkey| {
        let member = if pkey.key == pkey.full() {
            "full"
        } else {
            "limited as written"
        };
        let parent = interface(&pkey.parent);
        format!(
            "{parent} partition {:04x}, kernel {:04x}, {member}",
            pkey.key & !FULL_MEMBER,
            pkey.full()
        )
    });
    page.single("root", &root.root, |text| text.to_string());
    page.single("nfsroot", &root.nfsroot, |text| text.to_string());
    page.list("netroot", &root.netroot, |text| text.to_string());
    page.single("rd.iscsi.transport", &root.iscsi_transport, |text| {
        text.to_string()
    });
    page.single("rd.nonvmf", &root.no_nvmf, bool::to_string);
    page.list("rd.nvmf.discover", &root.nvmf_discover, |discover| {
        format!("{discover:?}")
    });
    page.single("rd.ib", &ib.enabled, bool::to_string);
    page.list("rd.ib.mode", &ib.modes, |wish| {
        format!(
            "{} {}",
            which(wish.interface.as_ref().map(interface)),
            wish.mode
        )
    });
    page.list("rd.ib.mtu", &ib.mtus, |wish| {
        let mtu = match wish.mtu {
            Mtu::Bytes(bytes) => bytes.to_string(),
            Mtu::Max => "max".to_string(),
        };
        format!("{} {mtu}", which(wish.interface.as_ref().map(interface)))
    });
    page.list("rd.ib.dhcp.client-id", &ib.client_ids, |wish| {
        let which = which(wish.interface.as_ref().map(interface));
        format!("{which} {}", wish.form)
    });
    page.list("rd.ib.link", &ib.links, |link| {
        format!("{} is {} on {}", link.name, link.kind, link.netdev)
    });
    page.list("rd.ib.roce", &ib.roce, |wish| {
        format!(
            "{} {}",
            which(wish.selector.as_ref().map(selector)),
            wish.mode
        )
    });
    page.list("rd.ib.porttype", &ib.port_types, |wish| {
        format!("{} {}", selector(&wish.selector), wish.port_type)
    });
    page.single("rd.ib.netns", &ib.netns, ToString::to_string);
    page.single("rd.ib.async_probe", &ib.async_probe, bool::to_string);
    page.single("rd.ib.kdump", &ib.kdump, bool::to_string);
    page.single("rd.ib.require", &ib.require, |require| match require {
        Require::Ports(ports) => ports.iter().map(selector).collect::<Vec<_>>().join(" and "),
        Require::Candidates(candidates) => {
            let layer = candidates.link_layer;
            let layer = layer.map_or_else(String::new, |layer| format!("{layer} "));
            let number = match candidates.number {
                Number::All => "all".to_string(),
                Number::Any(number) => format!("any {number}"),
            };
            let except = candidates.except.iter().map(selector);
            let except: Vec<_> = except.map(|port| format!(" without {port}")).collect();
            format!("{number} {layer}ports{}", except.concat())
        }
    });
    page.list("rd.ib.rate", &ib.rates, |wish| {
        format!(
            "{} {} Mb/s",
            which(wish.selector.as_ref().map(selector)),
            wish.megabits
        )
    });
    page.list("rd.ib.probe", &ib.probes, |probe| {
        probe.port.map_or(probe.address.to_string(), |port| {
            format!("{} port {port}", probe.address)
        })
    });
    page.single("rd.ib.timeout", &ib.timeout, u32::to_string);
    page.single("rd.ib.onfail", &ib.onfail, ToString::to_string);
    page.single("rd.ib.handover", &ib.handover, ToString::to_string);
    page.single(
        "waits for the network",
        &arguments.waits_for_network(),
        |text| text.to_string(),
    );
    page.single("asked", &arguments.requested_by(), |reason| {
        format!("{reason:?}")
    });
    for complaint in &arguments.complaints {
        writeln!(page.0, "! {complaint}").unwrap();
    }
    if arguments.complaints_lost > 0 {
        writeln!(page.0, "! and {} more", arguments.complaints_lost).unwrap();
    }
    page.0
}

struct Page(String);

impl Page {
    fn line<T>(&mut self, name: &str, spanned: &Spanned<'_, T>, show: impl Fn(&T) -> String) {
        writeln!(
            self.0,
            "{name}@{}: {}",
            spanned.column,
            show(&spanned.value)
        )
        .unwrap();
    }

    fn single<T>(&mut self, name: &str, single: &Single<'_, T>, show: impl Fn(&T) -> String) {
        if let Some(spanned) = single {
            self.line(name, spanned, show);
        }
    }

    fn list<T: Debug, const N: usize>(
        &mut self,
        name: &str,
        list: &List<'_, T, N>,
        show: impl Fn(&T) -> String,
    ) {
        for spanned in list {
            self.line(name, spanned, &show);
        }
    }
}

fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Seconds(seconds) => seconds.to_string(),
        Limit::Infinite => "infinite".to_string(),
    }
}

fn which(shown: Option<String>) -> String {
    shown.unwrap_or_else(|| "all".to_string())
}

fn interface(interface: &Interface<'_>) -> String {
    match interface {
        Interface::Name(name) => (*name).to_string(),
        Interface::Address(address) => format!("the one with {address}"),
        Interface::Port { device, port } => format!("the one of device {device} port {port}"),
        Interface::Pci(address) => format!("the one at {address}"),
    }
}

fn selector(selector: &Selector<'_>) -> String {
    match selector {
        Selector::Name(name) => format!("name {name}"),
        Selector::Port { device, port } => format!("device {device} port {port}"),
        Selector::Guid(address) => format!("GUID of {address}"),
        Selector::Pci(address) => format!("PCI {address}"),
    }
}

fn ip(ip: &Ip<'_>) -> String {
    let mut parts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        parts.extend(value.map(|value| format!("{name} {value}")))
    };
    add("client", ip.client.map(|client| client.to_string()));
    add("peer", ip.peer.map(|peer| peer.to_string()));
    add("gateway", ip.gateway.map(|gateway| gateway.to_string()));
    add("hostname", ip.hostname.map(str::to_string));
    add("interface", ip.interface.as_ref().map(interface));
    let methods: Vec<_> = ip.methods.iter().map(ToString::to_string).collect();
    add("methods", (!methods.is_empty()).then(|| methods.join("+")));
    add("mtu", ip.mtu.map(|mtu| mtu.to_string()));
    add("macaddr", ip.macaddr.map(|address| address.to_string()));
    add("dns1", ip.dns1.map(|dns| dns.to_string()));
    add("dns2", ip.dns2.map(|dns| dns.to_string()));
    add("ntp", ip.ntp.map(|ntp| ntp.to_string()));
    parts.join(", ")
}
