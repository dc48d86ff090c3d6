// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network links through rtnetlink: bring one up, and hear of changes (carrier, names).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::StreamExt;
use rtnetlink::packet_core::NetlinkMessage;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::AddressAttribute;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BondMode, Inet6IfaceFlags, LinkAttribute, LinkMessage,
};
use rtnetlink::packet_route::route::{RouteMessage, RouteScope};
use rtnetlink::{Handle, LinkBond, LinkUnspec, MulticastGroup, RouteMessageBuilder};
use tokio::task::JoinHandle;

use crate::dhcp6::progress::Router;
use crate::error::{Error, Result, errno_text};
use crate::ipoib::Address;

/// The kernel's words for a refused request.
fn words(error: &rtnetlink::Error) -> String {
    match error {
        rtnetlink::Error::NetlinkError(message) => errno_text(&message.to_io()),
        other => other.to_string(),
    }
}

type Messages = futures_util::stream::BoxStream<'static, NetlinkMessage<RouteNetlinkMessage>>;

/// A connection to rtnetlink(7), subscribed to changes of links, of IPv6 addresses, and to what routers advertise.
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
    /// Opens the socket; runs on the current tokio runtime.
    pub fn open() -> Result<Net> {
        let (connection, handle, messages) = rtnetlink::new_multicast_connection(&[
            MulticastGroup::Link,
            MulticastGroup::Ipv6Ifaddr,
            // What a router advertises.
            MulticastGroup::Ipv6Ifinfo,
        ])
        .map_err(|e| Error::io("rtnetlink", "socket cannot be opened", &e))?;
        Ok(Net {
            handle,
            messages: messages.map(|(message, _)| message).boxed(),
            connection: tokio::spawn(connection),
        })
    }

    /// Sets the interface with this index administratively up; already up is success.
    pub async fn set_up(&self, name: &str, index: u32) -> Result<()> {
        self.change(LinkUnspec::new_with_index(index).up().build())
            .await
            .map_err(|why| Error::new(name, "cannot be set up").seen(why))
    }

    /// Sets it administratively down; the error is the kernel's words.
    pub async fn set_down(&self, index: u32) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).down().build())
            .await
    }

    async fn change(&self, message: LinkMessage) -> std::result::Result<(), String> {
        let request = self.handle.link().change(message);
        request.execute().await.map_err(|e| words(&e))
    }

    /// Renames the interface; the error is the kernel's words.
    pub async fn rename(&self, index: u32, name: &str) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).name(name).build())
            .await
    }

    /// Sets the MTU in bytes; what the kernel makes of it must be read back.
    pub async fn set_mtu(&self, index: u32, bytes: u32) -> std::result::Result<(), String> {
        self.change(LinkUnspec::new_with_index(index).mtu(bytes).build())
            .await
    }

    /// The largest MTU in bytes that the device's driver lets be set (IFLA_MAX_MTU); none: unknown.
    pub async fn max_mtu(&self, index: u32) -> Option<u32> {
        let mut found = self.handle.link().get().match_index(index).execute();
        let message = found.next().await?.ok()?;
        let mut attributes = message.attributes.iter();
        attributes.find_map(|attribute| match attribute {
            // Zero: the driver checks by itself (net/core/dev.c, dev_validate_mtu).
            LinkAttribute::MaxMtu(bytes) if *bytes > 0 => Some(*bytes),
            _ => None,
        })
    }

    /// Makes a bond in active-backup mode; the error is the kernel's words.
    pub async fn add_bond(&self, name: &str) -> std::result::Result<(), String> {
        let bond = LinkBond::new(name).mode(BondMode::ActiveBackup).build();
        let request = self.handle.link().add(bond);
        request.execute().await.map_err(|e| words(&e))
    }

    /// Puts the interface, which must be down, into the bond with the index `bond`.
    pub async fn enslave(&self, index: u32, bond: u32) -> std::result::Result<(), String> {
        let message = LinkUnspec::new_with_index(index).controller(bond);
        self.change(message.build()).await
    }

    /// Takes an IP address away, with this prefix or with any; the error is the kernel's words.
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
        while let Some(message) = found.next().await {
            let message = message.map_err(|e| words(&e))?;
            if prefix.is_some_and(|prefix| prefix != message.header.prefix_len) {
                continue;
            }
            let request = self.handle.address().del(message);
            request.execute().await.map_err(|e| words(&e))?;
        }
        Ok(())
    }

    /// Adds an IP address, with the other end of a point-to-point link where there is one; there
    /// already is success.
    pub async fn add_address(
        &self,
        index: u32,
        address: IpAddr,
        prefix: u8,
        peer: Option<IpAddr>,
    ) -> std::result::Result<(), String> {
        let mut request = self.handle.address().add(index, address, prefix);
        if let Some(peer) = peer {
            // IFA_LOCAL stays the own address, IFA_ADDRESS is the other end (if_addr.h).
            let attributes = &mut request.message_mut().attributes;
            attributes.retain(|attribute| {
                !matches!(
                    attribute,
                    AddressAttribute::Address(_) | AddressAttribute::Broadcast(_)
                )
            });
            attributes.push(AddressAttribute::Address(peer));
        }
        request.replace().execute().await.map_err(|e| words(&e))
    }

    /// Adds a route to `network`, or a default route where it is none; there already is success.
    pub async fn add_route(
        &self,
        index: u32,
        network: Option<Address>,
        gateway: Option<IpAddr>,
    ) -> std::result::Result<(), String> {
        let message = route_message(index, network, gateway);
        let request = self.handle.route().add(message);
        request.replace().execute().await.map_err(|e| words(&e))
    }

    /// Takes away what [`Net::add_route`] added; gone already is success.
    pub async fn delete_route(
        &self,
        index: u32,
        network: Option<Address>,
        gateway: Option<IpAddr>,
    ) -> std::result::Result<(), String> {
        let message = route_message(index, network, gateway);
        match self.handle.route().del(message).execute().await {
            Err(rtnetlink::Error::NetlinkError(e))
                if e.to_io().raw_os_error() == Some(libc::ESRCH) =>
            {
                Ok(())
            }
            other => other.map_err(|e| words(&e)),
        }
    }

    /// What a router said on this link of DHCPv6, in the flags of its last advertisement.
    pub async fn router(&self, index: u32) -> Router {
        let mut found = self.handle.link().get().match_index(index).execute();
        let Some(Ok(message)) = found.next().await else {
            return Router::Silent;
        };
        let families = message
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
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

    /// Waits for the next link message and takes the ones already queued behind it. A lost
    /// message (socket overrun) counts as one: the caller looks at the whole state anyway.
    pub async fn changed(&mut self) {
        if self.messages.next().await.is_none() {
            // The connection is gone; never ready again, the safety look goes on.
            std::future::pending::<()>().await;
        }
        while let Some(Some(_)) = futures_util::FutureExt::now_or_never(self.messages.next()) {}
    }
}

fn route_message(index: u32, network: Option<Address>, gateway: Option<IpAddr>) -> RouteMessage {
    let family = network.map(|network| network.address).or(gateway);
    let prefix = network.map_or(0, |network| network.prefix);
    match (family, gateway) {
        (Some(IpAddr::V6(_)), gateway) => {
            let mut route = RouteMessageBuilder::<Ipv6Addr>::new().output_interface(index);
            if let Some(IpAddr::V6(network)) = network.map(|network| network.address) {
                route = route.destination_prefix(network, prefix);
            }
            match gateway {
                Some(IpAddr::V6(gateway)) => route.gateway(gateway).build(),
                _ => route.build(),
            }
        }
        (_, gateway) => {
            let mut route = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index);
            if let Some(IpAddr::V4(network)) = network.map(|network| network.address) {
                route = route.destination_prefix(network, prefix);
            }
            match gateway {
                Some(IpAddr::V4(gateway)) => route.gateway(gateway).build(),
                // Reached directly: without a gateway the kernel wants to be told (rtnetlink(7)).
                _ => route.scope(RouteScope::Link).build(),
            }
        }
    }
}
