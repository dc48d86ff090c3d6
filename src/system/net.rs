// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network links through rtnetlink: changes of links, addresses and routes, and notifications about
//! changes.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, CacheInfo};
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BondMode, Inet6IfaceFlags, LinkAttribute, LinkFlags, LinkMessage,
};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteScope};
use rtnetlink::{Handle, LinkBond, LinkUnspec, MulticastGroup, RouteMessageBuilder};
use tokio::task::JoinHandle;

use crate::error::{Error, Result, errno_text};
use crate::inet::{Route, Router};

/// Time limit for an answer that is lost. The kernel carries a request out before the call that sends
/// it returns: while a driver holds the kernel's lock of links (rtnl), that call waits without a limit.
const LIMIT: Duration = Duration::from_secs(10);
/// Metric of an IPv6 route that precedes others: the lowest one. For 0 the kernel takes
/// IP6_RT_PRIO_USER (linux/ipv6_route.h), and NetworkManager gives routes of Ethernet interfaces the
/// metric 100.
const FIRST_METRIC: u32 = 1;
/// Metric of any other IPv6 default route. Beside one with IP6_RT_PRIO_USER the kernel adds no route of an
/// advertisement of the same router, and then ignores the prefixes of the advertisement
/// (ndisc_router_discovery of net/ipv6/ndisc.c).
const METRIC: u32 = 1023;
/// INFINITY_LIFE_TIME (net/addrconf.h).
const FOR_EVER: u32 = u32::MAX;

/// The kernel's text for a refused request.
fn text_of(error: &rtnetlink::Error) -> String {
    match error {
        rtnetlink::Error::NetlinkError(message) => errno_text(&message.to_io()),
        other => other.to_string(),
    }
}

/// The answer to a request; the error is the kernel's text, or that no answer came.
async fn answer<T>(
    request: impl Future<Output = std::result::Result<T, rtnetlink::Error>>,
) -> std::result::Result<T, String> {
    within_limit(request).await?.map_err(|e| text_of(&e))
}

/// The result of `request`; an error if the kernel does not answer within [`LIMIT`].
async fn within_limit<T>(request: impl Future<Output = T>) -> std::result::Result<T, String> {
    tokio::time::timeout(LIMIT, request)
        .await
        .map_err(|_| format!("no answer from the kernel within {} s", LIMIT.as_secs()))
}

type Messages = futures_util::stream::BoxStream<'static, NetlinkMessage<RouteNetlinkMessage>>;

/// A connection to rtnetlink(7), subscribed to changes of links and IPv6 addresses and to router
/// advertisements.
pub struct Net {
    handle: Handle,
    messages: Messages,
    connection: JoinHandle<()>,
}

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Net").finish_non_exhaustive()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Net {
    /// Opens the socket; needs the current tokio runtime. The owner must read the subscribed
    /// messages: unread messages pile up in memory.
    pub fn open() -> Result<Net> {
        Net::subscribed(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv6Ifaddr,
            // Flags of router advertisements.
            MulticastGroup::Ipv6Ifinfo,
        ])
    }

    /// Like [`Net::open`], subscribed to changes of links and of addresses of both families.
    pub fn of_addresses() -> Result<Net> {
        Net::subscribed(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
        ])
    }

    fn subscribed(groups: &[MulticastGroup]) -> Result<Net> {
        let (connection, handle, messages) = rtnetlink::new_multicast_connection(groups)
            .map_err(|e| Error::io("rtnetlink", "socket cannot be opened", &e))?;
        Ok(Net {
            handle,
            messages: messages.map(|(message, _)| message).boxed(),
            connection: tokio::spawn(connection),
        })
    }

    /// Whether the connection has ended: no messages arrive and no requests are possible.
    pub fn is_closed(&self) -> bool {
        self.connection.is_finished()
    }

    /// Sets the interface with this index administratively up; an interface that is already up is
    /// success. The error is the kernel's text.
    pub async fn set_up(&self, index: u32) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).up().build())
            .await
    }

    /// Sets the interface administratively down; the error is the kernel's text.
    pub async fn set_down(&self, index: u32) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).down().build())
            .await
    }

    async fn change(&self, message: LinkMessage) -> std::result::Result<(), String> {
        let request = self.handle.link().change(message);
        answer(request.execute()).await
    }

    /// Renames the interface; the error is the kernel's text.
    pub async fn rename(&self, index: u32, name: &str) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).name(name).build())
            .await
    }

    /// Sets the MTU in bytes; the kernel may set another value, so read the MTU back.
    pub async fn set_mtu(&self, index: u32, bytes: u32) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).mtu(bytes).build())
            .await
    }

    /// The largest MTU in bytes that the driver accepts (IFLA_MAX_MTU); none if unknown.
    pub async fn max_mtu(&self, index: u32) -> Option<u32> {
        let mut found = self.handle.link().get().match_index(index).execute();
        let message = within_limit(found.next()).await.ok()??.ok()?;
        let mut attributes = message.attributes.iter();
        attributes.find_map(|attribute| match attribute {
            // Zero: the driver itself checks the MTU (net/core/dev.c, dev_validate_mtu).
            LinkAttribute::MaxMtu(bytes) if *bytes > 0 => Some(*bytes),
            _ => None,
        })
    }

    /// Creates a bond in active-backup mode; the error is the kernel's text.
    pub async fn add_bond(&self, name: &str) -> std::result::Result<(), String> {
        let bond = LinkBond::new(name).mode(BondMode::ActiveBackup).build();
        let request = self.handle.link().add(bond);
        answer(request.execute()).await
    }

    /// Adds the interface, which must be down, to the bond with the index `bond`.
    pub async fn enslave(&self, index: u32, bond: u32) -> std::result::Result<(), String> {
        let message = LinkUnspec::new_with_index(index).controller(bond);
        self.change(message.build()).await
    }

    /// Removes an IP address, with this prefix or with any prefix; the error is the kernel's text.
    pub async fn delete_address(
        &self,
        index: u32,
        address: IpAddr,
        prefix: Option<u8>,
    ) -> std::result::Result<(), String> {
        let mut found = self
            .handle
            .address()
            .get()
            .set_link_index_filter(index)
            .set_address_filter(address)
            .execute();
        while let Some(message) = within_limit(found.next()).await? {
            let message = message.map_err(|e| text_of(&e))?;
            if prefix.is_some_and(|prefix| prefix != message.header.prefix_len) {
                continue;
            }
            let request = self.handle.address().del(message);
            answer(request.execute()).await?;
        }
        Ok(())
    }

    /// Adds an IP address, on a point-to-point link with the peer's address; an address that
    /// already exists is success.
    pub async fn add_address(
        &self,
        index: u32,
        address: IpAddr,
        prefix: u8,
        peer: Option<IpAddr>,
    ) -> std::result::Result<(), String> {
        let mut request = self.handle.address().add(index, address, prefix);
        if let Some(peer) = peer {
            // IFA_LOCAL stays the own address, IFA_ADDRESS becomes the peer's address (if_addr.h).
            let attributes = &mut request.message_mut().attributes;
            attributes.retain(|attribute| {
                !matches!(
                    attribute,
                    AddressAttribute::Address(_) | AddressAttribute::Broadcast(_)
                )
            });
            attributes.push(AddressAttribute::Address(peer));
        }
        answer(request.replace().execute()).await
    }

    /// Adds an IPv6 address, or changes it, with a preferred lifetime of 0: deprecated, and valid for
    /// ever.
    pub async fn add_deprecated(
        &self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> std::result::Result<(), String> {
        let mut request = self.handle.address().add(index, address, prefix);
        let mut lifetimes = CacheInfo::default();
        lifetimes.ifa_valid = FOR_EVER;
        let lifetimes = AddressAttribute::CacheInfo(lifetimes);
        request.message_mut().attributes.push(lifetimes);
        answer(request.replace().execute()).await
    }

    /// Adds an IPv6 address without duplicate address detection. EEXIST: the address is there.
    pub async fn add_undetected(
        &self,
        index: u32,
        address: Ipv6Addr,
        prefix: u8,
    ) -> std::result::Result<(), String> {
        let mut request = self.handle.address().add(index, address.into(), prefix);
        let flags = AddressAttribute::Flags(AddressFlags::Nodad);
        request.message_mut().attributes.push(flags);
        answer(request.execute()).await
    }

    /// Adds a route; a route that already exists is success.
    pub async fn add_route(&self, index: u32, route: &Route) -> std::result::Result<(), String> {
        let message = placed(index, route, METRIC);
        let request = self.handle.route().add(message);
        answer(request.replace().execute()).await
    }

    /// Like [`Net::add_route`], but another route to the same network stays: the kernel uses
    /// that route first, and over IPv6 both.
    pub async fn append_route(&self, index: u32, route: &Route) -> std::result::Result<(), String> {
        let message = placed(index, route, METRIC);
        self.new_route(message, NLM_F_CREATE | NLM_F_APPEND).await
    }

    /// Like [`Net::append_route`], but the kernel uses this route first. Without `NLM_F_APPEND` the
    /// kernel puts an IPv4 route before the others (fib_table_insert of net/ipv4/fib_trie.c), an IPv6
    /// route beside them.
    pub async fn prepend_route(
        &self,
        index: u32,
        route: &Route,
    ) -> std::result::Result<(), String> {
        let message = placed(index, route, FIRST_METRIC);
        self.new_route(message, NLM_F_CREATE).await
    }

    /// Sends a route with these flags; a route that already exists is success.
    async fn new_route(
        &self,
        message: RouteMessage,
        flags: u16,
    ) -> std::result::Result<(), String> {
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewRoute(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut handle = self.handle.clone();
        let mut answers = handle.request(request).map_err(|e| text_of(&e))?;
        while let Some(message) = within_limit(answers.next()).await? {
            if let NetlinkPayload::Error(error) = message.payload {
                let error = error.to_io();
                let is_there = error.raw_os_error() == Some(libc::EEXIST);
                return if is_there {
                    Ok(())
                } else {
                    Err(errno_text(&error))
                };
            }
        }
        Ok(())
    }

    /// Removes a route: one with a gateway also if another program set it. A missing route is success.
    pub async fn delete_route(&self, index: u32, route: &Route) -> std::result::Result<(), String> {
        let mut message = route_message(index, route);
        // Without a protocol the route of any program matches (fib_table_delete of net/ipv4/fib_trie.c,
        // ip6_route_del of net/ipv6/route.c). A route without a gateway may be the kernel's own, of an
        // address.
        if route.gateway.is_some() {
            message.header.protocol = RouteProtocol::Unspec;
        }
        let request = self.handle.route().del(message);
        match within_limit(request.execute()).await? {
            Err(rtnetlink::Error::NetlinkError(e))
                if e.to_io().raw_os_error() == Some(libc::ESRCH) =>
            {
                Ok(())
            }
            other => other.map_err(|e| text_of(&e)),
        }
    }

    /// The DHCPv6 flags of the last router advertisement on this link; none if the kernel does not
    /// tell them.
    pub async fn router(&self, index: u32) -> Option<Router> {
        let mut found = self.handle.link().get().match_index(index).execute();
        let error = match within_limit(found.next()).await {
            Ok(Some(Ok(message))) => return Some(router_of(&message)),
            Ok(Some(Err(error))) => text_of(&error),
            Ok(None) => "no such interface".to_owned(),
            Err(error) => error,
        };
        log::debug!("router advertisements of interface {index}: {error}");
        None
    }

    /// Waits for the next link message, and takes all messages queued after it. A lost message
    /// (socket overrun) counts as a message: the caller reads the whole state anyway.
    pub async fn changed(&mut self) {
        self.events().await;
    }

    /// Waits for the next message about a link and returns the message as text.
    pub async fn link_message(&mut self) -> String {
        loop {
            match self.messages.next().await.as_ref().map(link_text) {
                Some(Some(text)) => return text,
                Some(None) => {}
                // The connection has ended.
                None => std::future::pending().await,
            }
        }
    }

    /// Like [`Net::changed`], and returns the content of the messages.
    pub async fn events(&mut self) -> LinkEvents {
        let mut events = LinkEvents::default();
        match self.messages.next().await {
            Some(message) => events.add(&message),
            // The connection has ended: never ready again; the periodic checks continue.
            None => std::future::pending().await,
        }
        while let Some(Some(message)) = futures_util::FutureExt::now_or_never(self.messages.next())
        {
            events.add(&message);
        }
        events
    }
}

/// One message about a link, as text: `ib0: up, carrier, MTU 2044`.
fn link_text(message: &NetlinkMessage<RouteNetlinkMessage>) -> Option<String> {
    let (link, is_gone) = match &message.payload {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => (link, false),
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => (link, true),
        NetlinkPayload::Overrun(_) => return Some("messages were lost".to_owned()),
        _ => return None,
    };
    let (mut name, mut mtu) = (format!("link {}", link.header.index), None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name.clone_from(text),
            LinkAttribute::Mtu(bytes) => mtu = Some(*bytes),
            _ => {}
        }
    }
    if is_gone {
        return Some(format!("{name}: removed"));
    }
    let has = |flag, yes, no| {
        if link.header.flags.contains(flag) {
            yes
        } else {
            no
        }
    };
    let up = has(LinkFlags::Up, "up", "down");
    let carrier = has(LinkFlags::LowerUp, "carrier", "no carrier");
    let mtu = mtu
        .map(|bytes| format!(", MTU {bytes}"))
        .unwrap_or_default();
    Some(format!("{name}: {up}, {carrier}{mtu}"))
}

/// Content of messages that the current state of the machine may no longer show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkEvents {
    /// Indices of the links that went down, lost the carrier or were removed in between.
    faltered: BTreeSet<u32>,
    /// Messages were lost (socket overrun): any link may have been down.
    overrun: bool,
}

impl LinkEvents {
    /// Whether the link may have been down since the last call.
    pub fn has_faltered(&self, index: u32) -> bool {
        self.overrun || self.faltered.contains(&index)
    }

    /// A value for which any link may have been down.
    pub fn everything() -> LinkEvents {
        LinkEvents {
            overrun: true,
            ..LinkEvents::default()
        }
    }

    /// Adds the content of later messages.
    pub fn join(&mut self, mut later: LinkEvents) {
        self.faltered.append(&mut later.faltered);
        self.overrun |= later.overrun;
    }

    fn add(&mut self, message: &NetlinkMessage<RouteNetlinkMessage>) {
        match &message.payload {
            NetlinkPayload::Overrun(_) => self.overrun = true,
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                let works = LinkFlags::Up | LinkFlags::LowerUp;
                let works = link.header.flags.contains(works);
                self.faltered.extend((!works).then_some(link.header.index));
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => {
                self.faltered.insert(link.header.index);
            }
            _ => {}
        }
    }
}

/// The message that adds the route; `metric` is that of an IPv6 default route.
fn placed(index: u32, route: &Route, metric: u32) -> RouteMessage {
    let mut message = route_message(index, route);
    let is_v6 = route.network.address.is_ipv6();
    if is_v6 && route.network.prefix == 0 {
        message.attributes.push(RouteAttribute::Priority(metric));
    }
    message
}

fn route_message(index: u32, route: &Route) -> RouteMessage {
    let Route { network, gateway } = *route;
    let prefix = network.prefix;
    // A default gateway has no destination.
    let network = Some(network.address).filter(|_| prefix > 0 || gateway.is_none());
    match (network.or(gateway), gateway) {
        (Some(IpAddr::V6(_)), gateway) => {
            let mut route = RouteMessageBuilder::<Ipv6Addr>::new().output_interface(index);
            if let Some(IpAddr::V6(network)) = network {
                route = route.destination_prefix(network, prefix);
            }
            match gateway {
                Some(IpAddr::V6(gateway)) => route.gateway(gateway).build(),
                _ => route.build(),
            }
        }
        (_, gateway) => {
            let mut route = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index);
            if let Some(IpAddr::V4(network)) = network {
                route = route.destination_prefix(network, prefix);
            }
            match gateway {
                Some(IpAddr::V4(gateway)) => route.gateway(gateway).build(),
                // Reached directly: without a gateway the kernel requires the scope (rtnetlink(7)).
                _ => route.scope(RouteScope::Link).build(),
            }
        }
    }
}

/// What a router advertised on the link of this message.
fn router_of(message: &LinkMessage) -> Router {
    let mut attributes = message.attributes.iter();
    let families = attributes.find_map(|attribute| match attribute {
        LinkAttribute::AfSpecUnspec(families) => Some(families.as_slice()),
        _ => None,
    });
    let mut families = families.unwrap_or_default().iter();
    let v6 = families.find_map(|family| match family {
        AfSpecUnspec::Inet6(attributes) => Some(attributes.as_slice()),
        _ => None,
    });
    let mut attributes = v6.unwrap_or_default().iter();
    let flags = attributes.find_map(|attribute| match attribute {
        AfSpecInet6::Flags(flags) => Some(*flags),
        _ => None,
    });
    match flags.unwrap_or(Inet6IfaceFlags::empty()) {
        flags if flags.contains(Inet6IfaceFlags::RaManaged) => Router::Managed,
        flags if flags.contains(Inet6IfaceFlags::Otherconf) => Router::Stateless,
        flags if flags.contains(Inet6IfaceFlags::RaRcvd) => Router::Unmanaged,
        _ => Router::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtnetlink::packet_route::AddressFamily;

    fn link(index: u32, flags: LinkFlags, is_gone: bool) -> NetlinkMessage<RouteNetlinkMessage> {
        let mut message = LinkMessage::default();
        (message.header.index, message.header.flags) = (index, flags);
        NetlinkMessage::from(if is_gone {
            RouteNetlinkMessage::DelLink(message)
        } else {
            RouteNetlinkMessage::NewLink(message)
        })
    }

    #[test]
    fn a_link_message_is_a_short_text() {
        let whole = LinkFlags::Up | LinkFlags::LowerUp;
        let text = |flags, is_gone| link_text(&link(7, flags, is_gone)).unwrap();
        assert_eq!(text(whole, false), "link 7: up, carrier");
        assert_eq!(text(LinkFlags::Up, false), "link 7: up, no carrier");
        assert_eq!(text(whole, true), "link 7: removed");
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName("ib0".into()),
            LinkAttribute::Mtu(2044),
        ];
        let message = NetlinkMessage::from(RouteNetlinkMessage::NewLink(message));
        let text = link_text(&message).unwrap();
        assert_eq!(text, "ib0: down, no carrier, MTU 2044");
    }

    #[test]
    fn a_link_that_was_down_between_two_reads_is_known() {
        let whole = LinkFlags::Up | LinkFlags::LowerUp;
        let mut events = LinkEvents::default();
        events.add(&link(2, whole, false));
        events.add(&link(3, LinkFlags::Up, false));
        events.add(&link(4, whole, true));
        let mut later = LinkEvents::default();
        later.add(&link(5, LinkFlags::empty(), false));
        events.join(later);
        let all: Vec<u32> = (1..7).filter(|index| events.has_faltered(*index)).collect();
        assert_eq!(all, [3, 4, 5]);
        events.overrun = true;
        assert!(events.has_faltered(2));
    }

    #[test]
    fn only_a_default_gateway_has_no_destination() {
        let message = |network: &str, gateway: &str| {
            let route = Route {
                network: network.parse().unwrap(),
                gateway: gateway.parse().ok(),
            };
            let message = route_message(7, &route);
            let mut attributes = message.attributes.iter();
            let has = attributes.any(|found| matches!(found, RouteAttribute::Destination(_)));
            let header = message.header;
            (header.address_family, header.destination_prefix_length, has)
        };
        let (v4, v6) = (AddressFamily::Inet, AddressFamily::Inet6);
        assert_eq!(message("0.0.0.0/0", "10.0.0.1"), (v4, 0, false));
        assert_eq!(message("::/0", "fd00::1"), (v6, 0, false));
        assert_eq!(message("0.0.0.0/0", ""), (v4, 0, true));
        assert_eq!(message("::/0", ""), (v6, 0, true));
        assert_eq!(message("10.9.0.0/16", "10.0.0.1"), (v4, 16, true));
        assert_eq!(message("fd01::/64", ""), (v6, 64, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_answer_of_the_kernel_is_an_error() {
        // The connection is not polled, so no request is sent: as if the answers were lost.
        let (connection, handle, messages) = rtnetlink::new_connection().unwrap();
        let net = Net {
            handle,
            messages: messages.map(|(message, _)| message).boxed(),
            connection: tokio::spawn(async move {
                let _unanswered = connection;
                std::future::pending().await
            }),
        };
        let silent = || Err("no answer from the kernel within 10 s".to_owned());
        let address: IpAddr = "10.0.0.5".parse().unwrap();
        let route = Route::default_through(address);
        assert_eq!(net.set_mtu(1, 1500).await, silent());
        assert_eq!(net.set_up(1).await, silent());
        assert_eq!(net.set_down(1).await, silent());
        assert_eq!(net.rename(1, "x").await, silent());
        assert_eq!(net.add_bond("x").await, silent());
        assert_eq!(net.enslave(1, 2).await, silent());
        assert_eq!(net.add_address(1, address, 24, None).await, silent());
        assert_eq!(net.add_deprecated(1, address, 24).await, silent());
        assert_eq!(net.delete_address(1, address, None).await, silent());
        assert_eq!(net.add_route(1, &route).await, silent());
        assert_eq!(net.append_route(1, &route).await, silent());
        assert_eq!(net.prepend_route(1, &route).await, silent());
        assert_eq!(net.delete_route(1, &route).await, silent());
        assert_eq!(net.router(1).await, None);
    }
}
