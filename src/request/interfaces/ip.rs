// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what an `ip=` requests of its interface: static addresses, DHCP, DHCPv6, IPv6
//! autoconfiguration.

use kernel_cmdline::{Arguments, Interface, Ip, Limit, Method, Spanned};

use super::Collected;
use super::identity::is_infiniband;
use crate::dhcp::identity::RequestedId;
use crate::dhcp::v4::Dhcp4Wish;
use crate::dhcp::v6::Dhcp6Wish;
use crate::dhcp::v6::information::InformationWish;
use crate::inet::Address;
use crate::request::root;
use crate::wish::ipoib::{Autoconf, Family, IpoibWish, RequestedMtu, SecondFamily};
use crate::wish::origin::{Origin, origin};

/// `either6`: seconds to wait for a router (`rd.net.timeout.ipv6auto=`); the kernel has sent three
/// solicitations by then (RFC 4861 6.3.7).
const ROUTER_S: u32 = 10;
/// Seconds to wait for the second address family (`rd.net.timeout.ip-required=`), as
/// nm-initrd-generator.
const SECOND_FAMILY_S: u32 = 20;
/// Maximum of characters in option 60: its length is one byte, and a character has up to four
/// bytes.
const VENDOR_CLASS: usize = 63;

impl Collected<'_, '_> {
    pub(super) fn ips(&mut self) {
        let arguments = self.arguments;
        let ours = |ip: &Ip<'_>| ip.interface.is_some_and(|i| is_infiniband(arguments, &i));
        for ip in arguments.net.ip.iter().filter(|ip| ours(&ip.value)) {
            if let Some(interface) = ip.value.interface {
                self.ip(&ip.value, &ip.with(interface));
            }
        }
    }

    /// Adds what an `ip=` requests of this interface.
    pub(super) fn ip(&mut self, ip: &Ip<'_>, interface: &Spanned<'_, Interface<'_>>) {
        let arguments = self.arguments;
        let is_static = ip.methods.iter().all(|method| method.is_static());
        self.change(interface, |found| {
            let ipoib = &mut found.ipoib;
            let is_left = !addressed(arguments, ip, ipoib) && !is_static;
            found.left |= is_left;
            // Beside the address of a server, as nm-initrd-generator and systemd-network-generator
            // set it.
            if let Some(client) = ip.client.filter(|_| !is_left) {
                let host = Address::host(client.address);
                ipoib.addresses.push(Address {
                    prefix: client.prefix.unwrap_or(host.prefix),
                    ..host
                });
                ipoib.gateways.extend(ip.gateway);
            }
            // The boot server too, which dracut uses for a root file system that names no server.
            if !is_left {
                ipoib.peer = ip.peer.map(|peer| peer.address).or(ipoib.peer);
            }
            let hostname = ip.hostname.map(str::to_owned);
            ipoib.hostname = hostname.or_else(|| ipoib.hostname.take());
            ipoib.dns.extend(ip.dns1.into_iter().chain(ip.dns2));
            ipoib.mtu = ip.mtu.map(RequestedMtu::Bytes).or(ipoib.mtu);
        });
    }
}

/// The IPv6 autoconfiguration that an `ip=` requests, if any. `either6` tries a router first.
fn autoconf(ip: &Ip<'_>) -> Option<Autoconf> {
    let has_any = |listed: &[Method]| ip.methods.iter().any(|method| listed.contains(method));
    if has_any(&[Method::Auto6, Method::Either6, Method::Auto]) {
        Some(Autoconf::Router)
    } else if has_any(&[Method::Link6]) {
        Some(Autoconf::LinkLocal)
    } else {
        None
    }
}

/// Whether an `ip=` requests a dynamic address by a method that ibboot carries out.
pub fn is_addressed(ip: &Ip<'_>) -> bool {
    let asks = |method: &Method| method.is_dhcp4() || method.is_dhcp6();
    ip.methods.iter().any(asks) || autoconf(ip).is_some()
}

/// Adds the dynamic methods of an `ip=`; false if it has none that ibboot carries out.
fn addressed(arguments: &Arguments<'_>, ip: &Ip<'_>, ipoib: &mut IpoibWish) -> bool {
    ipoib.dhcp = dhcp(arguments, ip).or(ipoib.dhcp.take());
    ipoib.dhcp6 = dhcp6(arguments, ip).or(ipoib.dhcp6.take());
    ipoib.autoconf = autoconf(ip).or(ipoib.autoconf);
    ipoib.information = information(arguments, ip).or(ipoib.information.take());
    is_addressed(ip)
}

/// Maximum of seconds for one DHCP try.
fn limit_s(arguments: &Arguments<'_>) -> Option<u32> {
    match arguments.net.timeouts.dhcp.map(|limit| limit.value) {
        // 0 has a meaning only for dracut, as in rd.retry=.
        None | Some(Limit::Infinite | Limit::Seconds(0)) => None,
        Some(Limit::Seconds(seconds)) => Some(seconds),
    }
}

/// How long both families are waited for, if `ipoib` has both.
pub(super) fn second_family(arguments: &Arguments<'_>, ipoib: &IpoibWish) -> Option<SecondFamily> {
    let limit = arguments.net.timeouts.ip_required;
    let wait_s = match limit.map(|limit| limit.value) {
        None => SECOND_FAMILY_S,
        Some(Limit::Seconds(seconds)) => seconds,
        Some(Limit::Infinite) => return None,
    };
    let server = root::named(arguments).and_then(|root| root.value.server);
    ipoib.asks_both_families().then(|| SecondFamily {
        wait_s,
        needed: server.filter(|_| ipoib.boot).map(Family::from),
        is_over: false,
    })
}

/// The arguments that every client of this interface follows.
pub(super) fn settings(arguments: &Arguments<'_>, ipoib: &IpoibWish) -> Vec<Origin> {
    let net = &arguments.net;
    let (timeouts, settings) = (&net.timeouts, &net.dhcp);
    let (dhcp, dhcp6) = (ipoib.dhcp.as_ref(), ipoib.dhcp6.as_ref());
    let is_any = dhcp.is_some() || dhcp6.is_some();
    let is_routed = ipoib.autoconf == Some(Autoconf::Router);
    let is_either = dhcp6.is_some_and(|dhcp6| dhcp6.after_router_s.is_some());
    let follows = [
        timeouts.dhcp.as_ref().map(origin).filter(|_| is_any),
        // The number of tries has a meaning only if a try has a limit.
        settings.retry.as_ref().map(origin).filter(|_| is_any),
        settings
            .vendor_class
            .as_ref()
            .map(origin)
            .filter(|_| dhcp.is_some()),
        net.peerdns
            .as_ref()
            .map(origin)
            .filter(|_| is_any || is_routed),
        timeouts.ipv6auto.as_ref().map(origin).filter(|_| is_either),
        timeouts
            .ip_required
            .as_ref()
            .map(origin)
            .filter(|_| ipoib.asks_both_families()),
    ];
    follows.into_iter().flatten().collect()
}

/// The DHCPv6 that an `ip=` requests, if any.
fn dhcp6(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<Dhcp6Wish> {
    let net = &arguments.net;
    let methods = &ip.methods;
    let patience = net.timeouts.ipv6auto.map_or(ROUTER_S, |limit| limit.value);
    let is_certain = methods.contains(&Method::Dhcp6);
    (is_certain || methods.contains(&Method::Either6)).then(|| Dhcp6Wish {
        client_id: RequestedId::default(),
        limit_s: limit_s(arguments),
        tries: net.dhcp.retry.map_or(1, |tries| tries.value),
        keep: arguments.network_root().is_some(),
        ignore_dns: net.peerdns.is_some_and(|peerdns| !peerdns.value),
        after_router_s: (!is_certain).then_some(patience),
        boot: false,
    })
}

/// The name servers from the DHCPv6 server of a router, if an `ip=` requests them.
fn information(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<InformationWish> {
    let is_ignored = arguments.net.peerdns.is_some_and(|peerdns| !peerdns.value);
    let is_requested = autoconf(ip) == Some(Autoconf::Router) && !is_ignored;
    is_requested.then(InformationWish::default)
}

/// The DHCP that an `ip=` requests, if any.
fn dhcp(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<Dhcp4Wish> {
    let net = &arguments.net;
    let limit_s = limit_s(arguments);
    ip.wants_dhcp4().then(|| Dhcp4Wish {
        client_id: RequestedId::default(),
        vendor_class: net
            .dhcp
            .vendor_class
            .map(|class| class.value.chars().take(VENDOR_CLASS).collect()),
        host_name: ip.hostname.map(str::to_owned),
        limit_s,
        tries: net.dhcp.retry.map_or(1, |tries| tries.value),
        keep: arguments.network_root().is_some(),
        ignore_dns: net.peerdns.is_some_and(|peerdns| !peerdns.value),
        ignore_mtu: false,
        boot: false,
    })
}

#[cfg(test)]
mod tests {
    use kernel_cmdline::{Source, parse};

    use super::*;

    fn wish(text: &str) -> IpoibWish {
        let arguments = parse(&[Source::new("--cmdline", text.as_bytes())]);
        let mut wish = IpoibWish::default();
        for ip in &arguments.net.ip {
            addressed(&arguments, &ip.value, &mut wish);
        }
        wish
    }

    #[test]
    fn name_servers_are_asked_for_where_no_lease_brings_them() {
        for (text, is_asked) in [
            ("ip=ib0:auto6", true),
            ("ip=ib0:either6", true),
            ("ip=ib0:dhcp,auto6", true),
            ("ip=ib0:link6", false),
            ("ip=ib0:dhcp", false),
            ("ip=ib0:dhcp6", false),
            ("ip=ib0:auto6,dhcp6", false),
            ("ip=ib0:auto6 ip=ib0:dhcp6", false),
            ("ip=ib0:auto6 rd.peerdns=0", false),
            ("ip=ib0:either6 rd.peerdns=1", true),
        ] {
            assert_eq!(wish(text).information().is_some(), is_asked, "{text}");
        }
    }

    #[test]
    fn the_methods_of_several_arguments_add_up() {
        for (text, dhcp, dhcp6, autoconf) in [
            ("ip=ib0:auto", true, false, Some(Autoconf::Router)),
            ("ip=ib0:dhcp6 ip=ib0:dhcp", true, true, None),
            (
                "ip=ib0:link6 ip=ib0:dhcp",
                true,
                false,
                Some(Autoconf::LinkLocal),
            ),
            (
                "ip=ib0:auto6 ip=ib0:dhcp",
                true,
                false,
                Some(Autoconf::Router),
            ),
        ] {
            let wish = wish(text);
            let found = (wish.dhcp.is_some(), wish.dhcp6.is_some(), wish.autoconf);
            assert_eq!(found, (dhcp, dhcp6, autoconf), "{text}");
            let is_routed = autoconf == Some(Autoconf::Router);
            assert_eq!(wish.information.is_some(), is_routed, "{text}");
        }
    }

    #[test]
    fn the_clients_of_both_families_follow_the_settings() {
        for (text, limit_s, tries, keep, ignore_dns) in [
            ("rd.peerdns=1 rd.net.timeout.dhcp=0", None, 1, false, false),
            (
                "rd.net.timeout.dhcp=20 rd.net.dhcp.retry=3 root=nfs:10.0.0.1:/x rd.peerdns=0",
                Some(20),
                3,
                true,
                true,
            ),
        ] {
            let wish = wish(&format!("ip=ib0:dhcp,dhcp6 {text}"));
            let (dhcp, dhcp6) = (wish.dhcp.unwrap(), wish.dhcp6.unwrap());
            let expected = (limit_s, tries, keep, ignore_dns);
            let found = (dhcp.limit_s, dhcp.tries, dhcp.keep, dhcp.ignore_dns);
            assert_eq!(found, expected, "{text}");
            let found = (dhcp6.limit_s, dhcp6.tries, dhcp6.keep, dhcp6.ignore_dns);
            assert_eq!(found, expected, "{text}");
        }
        let class = "\u{e9}".repeat(VENDOR_CLASS + 1);
        let dhcp = wish(&format!("ip=ib0:dhcp rd.net.dhcp.vendor-class={class}")).dhcp;
        let sent = dhcp.unwrap().vendor_class.unwrap();
        assert_eq!(sent.chars().count(), VENDOR_CLASS);
    }

    #[test]
    fn the_family_of_the_root_file_system_is_needed() {
        for (text, boot, expected) in [
            ("ip=ib0:dhcp", true, None),
            ("ip=ib0:dhcp,dhcp6", true, Some((20, None))),
            (
                "ip=ib0:dhcp,auto6 root=nfs:10.0.0.1:/x",
                true,
                Some((20, Some(Family::Ipv4))),
            ),
            (
                "ip=ib0:dhcp,auto6 root=nfs:10.0.0.1:/x",
                false,
                Some((20, None)),
            ),
            (
                "ip=ib0:dhcp,dhcp6 rd.net.timeout.ip-required=5 root=nfs:[fd00::1]:/x",
                true,
                Some((5, Some(Family::Ipv6))),
            ),
            (
                "ip=ib0:dhcp,dhcp6 rd.net.timeout.ip-required=infinity",
                true,
                None,
            ),
        ] {
            let arguments = parse(&[Source::new("--cmdline", text.as_bytes())]);
            let ipoib = IpoibWish { boot, ..wish(text) };
            let found = second_family(&arguments, &ipoib);
            let found = found.map(|second| (second.wait_s, second.needed));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn an_interface_without_a_client_follows_no_setting_of_clients() {
        let line =
            "rd.net.timeout.dhcp=20 rd.net.dhcp.retry=3 rd.peerdns=0 rd.net.timeout.ipv6auto=5";
        for (ip, expected) in [
            ("ip=ib0:link6", &[][..]),
            ("ip=ib0:auto6", &["rd.peerdns=0"]),
            (
                "ip=ib0:dhcp6",
                &[
                    "rd.net.timeout.dhcp=20",
                    "rd.net.dhcp.retry=3",
                    "rd.peerdns=0",
                ],
            ),
        ] {
            let text = format!("{ip} {line}");
            let arguments = parse(&[Source::new("--cmdline", text.as_bytes())]);
            let follows = settings(&arguments, &wish(&text));
            let texts: Vec<String> = follows.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{ip}");
        }
    }
}
