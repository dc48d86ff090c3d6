// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DHCP and DHCPv6 clients and the inquiries for name servers of all interfaces.

use super::clients::{Means, Site};
use super::dhcp;
use super::dhcp6;
use super::information::Inquiries;
use crate::dhcp::{v4, v6};
use crate::facts;
use crate::facts::granted::granted;
use crate::system::decoder;
use crate::wish::ipoib::IpoibWish;

/// The clients of all kinds.
#[derive(Debug)]
pub struct Leasing {
    pub v4: dhcp::Clients4,
    pub v6: dhcp6::Clients6,
    pub information: Inquiries,
}

/// Result of one step for an interface.
#[derive(Debug)]
pub struct Granted {
    /// The request for the interface, with what servers granted.
    pub wish: IpoibWish,
    /// An IPv4 address was lost: the next lease may bring another MTU and other routes.
    pub is_lost: bool,
}

impl Leasing {
    /// Begins with the leases of earlier runs of this boot. `is_boot`: in an initramfs.
    pub fn new(known: facts::Leases, is_boot: bool) -> Leasing {
        Leasing {
            v4: dhcp::Clients4::new(known.dhcp),
            v6: dhcp6::Clients6::new(known.dhcp6, is_boot),
            information: Inquiries::new(is_boot),
        }
    }

    /// Begins anew with another request, in an initramfs. A lease stays if the new client sends the same
    /// identifier and options.
    pub fn anew(self) -> Leasing {
        let known = self.leases();
        Leasing {
            v4: dhcp::Clients4::anew(known.dhcp),
            v6: dhcp6::Clients6::anew(known.dhcp6),
            information: Inquiries::new(true),
        }
    }

    /// Begins the clients of an interface, and lets them do what is due.
    pub async fn step(&mut self, site: Site<'_>, means: &mut Means<'_>) -> Granted {
        let asks = site.wish.dhcp.is_some() || site.wish.dhcp6.is_some();
        if asks && !site.netdev.can_transmit() {
            // The answer to the first message comes within milliseconds of carrier.
            decoder::prepare();
        }
        let is_lost = self.v4.step(&site, means).await;
        self.v6.step(&site, means, &mut self.information).await;
        self.information.step(&site, means, &self.v6).await;
        let leases = self.leases();
        Granted {
            wish: granted(site.wish, site.netdev, &leases.dhcp, &leases.dhcp6),
            is_lost,
        }
    }

    /// Whether a client has a lease that ends, and that must be renewed before.
    pub fn holds_lease(&self) -> bool {
        let facts::Leases { dhcp, dhcp6, .. } = self.leases();
        let dhcp = dhcp.iter().filter_map(|one| one.lease.as_ref());
        let dhcp6 = dhcp6.iter().filter_map(|one| one.lease.as_ref());
        dhcp.filter_map(v4::lease::Lease::ends_ns)
            .chain(dhcp6.filter_map(v6::lease::Lease::ends_ns))
            .next()
            .is_some()
    }

    /// The progress of each client.
    pub fn leases(&self) -> facts::Leases {
        facts::Leases {
            dhcp: self.v4.clients.progress(),
            dhcp6: self.v6.progress(),
            renewer: None,
        }
    }
}
