// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what an `ip=` wants beyond the addresses that are written in it: DHCP, DHCPv6, IPv6
//! autoconfiguration.

use kernel_cmdline::{Arguments, Ip, Limit, Method};

use crate::dhcp;
use crate::dhcp::identity::WantedId;
use crate::dhcp::v6::information;
use crate::wish::ipoib::{self, Autoconf};

/// `either6`: seconds that a router is waited for (`rd.net.timeout.ipv6auto=`): it has been
/// solicited three times by then (RFC 4861 6.3.7).
const ROUTER_S: u32 = 10;
/// Characters of option 60: it has one byte for its length, and a character has up to four.
const VENDOR_CLASS: usize = 63;

/// What an `ip=` wants of IPv6 autoconfiguration, if it does. `either6` is router first.
fn autoconf(ip: &Ip<'_>) -> Option<Autoconf> {
    let wants = |wanted: &[Method]| ip.methods.iter().any(|method| wanted.contains(method));
    if wants(&[Method::Auto6, Method::Either6, Method::Auto]) {
        Some(Autoconf::Router)
    } else if wants(&[Method::Link6]) {
        Some(Autoconf::LinkLocal)
    } else {
        None
    }
}

/// Whether an `ip=` asks for an address that is not written in it, in a way that is ours.
pub fn is_addressed(ip: &Ip<'_>) -> bool {
    let asks = |method: &Method| method.is_dhcp4() || method.is_dhcp6();
    ip.methods.iter().any(asks) || autoconf(ip).is_some()
}

/// Adds what an `ip=` wants beyond what is written in it; false: nothing that is ours.
pub(super) fn addressed(arguments: &Arguments<'_>, ip: &Ip<'_>, ipoib: &mut ipoib::Wish) -> bool {
    ipoib.dhcp = dhcp(arguments, ip).or(ipoib.dhcp.take());
    ipoib.dhcp6 = dhcp6(arguments, ip).or(ipoib.dhcp6.take());
    ipoib.autoconf = autoconf(ip).or(ipoib.autoconf);
    ipoib.information = information(arguments, ip).or(ipoib.information.take());
    is_addressed(ip)
}

/// Seconds that a try of DHCP takes at most.
fn limit_s(arguments: &Arguments<'_>) -> Option<u32> {
    match arguments.net.timeouts.dhcp.map(|limit| limit.value) {
        // 0 is dracut's to make sense of, as that of rd.retry=.
        None | Some(Limit::Infinite | Limit::Seconds(0)) => None,
        Some(Limit::Seconds(seconds)) => Some(seconds),
    }
}

/// What an `ip=` wants of DHCPv6, if it does.
fn dhcp6(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<dhcp::v6::Wish> {
    let net = &arguments.net;
    let methods = &ip.methods;
    let patience = net.timeouts.ipv6auto.map_or(ROUTER_S, |limit| limit.value);
    let is_certain = methods.contains(&Method::Dhcp6);
    (is_certain || methods.contains(&Method::Either6)).then(|| dhcp::v6::Wish {
        client_id: WantedId::default(),
        limit_s: limit_s(arguments),
        tries: net.dhcp.retry.map_or(1, |tries| tries.value),
        keep: arguments.network_root().is_some(),
        ignore_dns: net.peerdns.is_some_and(|peerdns| !peerdns.value),
        after_router_s: (!is_certain).then_some(patience),
    })
}

/// Whether an `ip=` wants the name servers that a router's DHCPv6 server knows.
fn information(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<information::Wish> {
    let is_ignored = arguments.net.peerdns.is_some_and(|peerdns| !peerdns.value);
    let is_wanted = autoconf(ip) == Some(Autoconf::Router) && !is_ignored;
    is_wanted.then(information::Wish::default)
}

/// What an `ip=` wants of DHCP, if it does.
fn dhcp(arguments: &Arguments<'_>, ip: &Ip<'_>) -> Option<dhcp::v4::Wish> {
    let net = &arguments.net;
    let limit_s = limit_s(arguments);
    ip.wants_dhcp4().then(|| dhcp::v4::Wish {
        client_id: WantedId::default(),
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
    })
}

#[cfg(test)]
mod tests {
    use kernel_cmdline::{Source, parse};

    use super::*;

    fn wish(text: &str) -> ipoib::Wish {
        let arguments = parse(&[Source::new("--cmdline", text.as_bytes())]);
        let mut wish = ipoib::Wish::default();
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
}
