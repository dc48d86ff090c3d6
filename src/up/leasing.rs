// SPDX-License-Identifier: MIT OR Apache-2.0
//! What servers give to an interface: addresses of DHCP and DHCPv6, and name servers.

use super::clients::{Means, Site};
use super::dhcp;
use super::dhcp6;
use super::information::Inquiries;
use crate::facts;
use crate::facts::granted::granted;
use crate::wish::ipoib::IpoibWish;

/// The clients of all kinds.
#[derive(Debug)]
pub struct Leasing {
    pub v4: dhcp::Leases,
    pub v6: dhcp6::Leases,
    pub information: Inquiries,
}

/// What came of one step.
#[derive(Debug)]
pub struct Granted {
    /// What is requested of the interface, with what servers granted.
    pub wish: IpoibWish,
    /// An IPv4 address was lost: the next lease may bring another MTU and other routes.
    pub is_lost: bool,
}

impl Leasing {
    /// Begins with what an earlier run of this boot was granted.
    pub fn new(known: facts::Leases, is_boot: bool) -> Leasing {
        Leasing {
            v4: dhcp::Leases::new(known.dhcp),
            v6: dhcp6::Leases::new(known.dhcp6, is_boot),
            information: Inquiries::new(is_boot),
        }
    }

    /// Moves the clients of an interface on.
    pub async fn step(&mut self, site: Site<'_>, means: &mut Means<'_>) -> Granted {
        let is_lost = self.v4.step(&site, means).await;
        self.v6.step(&site, means, &mut self.information).await;
        self.information.step(&site, means, &self.v6).await;
        let leases = self.leases();
        Granted {
            wish: granted(site.wish, site.netdev, &leases.dhcp, &leases.dhcp6),
            is_lost,
        }
    }

    /// How far each client came.
    pub fn leases(&self) -> facts::Leases {
        facts::Leases {
            dhcp: self.v4.clients.progress(),
            dhcp6: self.v6.progress(),
        }
    }
}
