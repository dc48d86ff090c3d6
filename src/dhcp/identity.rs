// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the requested client identifier, from which both families build a client's identity.

use kernel_cmdline::Guid;
use serde::{Deserialize, Serialize};

use super::v6::identity::of_rfc4361;

/// The requested client identifier (option 61).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedId {
    /// On InfiniBand the identifier that the card's boot firmware sends, so that one reservation
    /// fits both; on Ethernet 01 and the address.
    #[default]
    Firmware,
    /// The identifier of the firmware with this P_Key as IAID: another interface of the port sends
    /// that of the firmware.
    Partition(u16),
    /// Hardware type and GUID or address: `20:` and 8 bytes on InfiniBand.
    Hardware,
    /// On InfiniBand the port GUID alone.
    PortGuid,
    /// On InfiniBand that of iPXE: `01:` and the GUID without its two middle bytes (src/drivers/net/ipoib.c of
    /// iPXE).
    Ipxe,
    Bytes(Vec<u8>),
}

/// The forms of a client identifier over InfiniBand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    /// The hardware type and a port GUID.
    Hardware(Guid),
    /// An IAID and a DUID (RFC 4361 6.1).
    Duid(u32, &'a [u8]),
    /// Bytes of a site.
    Other,
}

/// The interface that sends an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// An IPoIB interface, with its port GUID if known.
    Interface(Option<Guid>),
    /// A bond: its port GUID is that of the interface that carries the traffic.
    Bond,
}

/// The form of a client identifier.
pub fn form(client_id: &[u8]) -> Form<'_> {
    match client_id {
        [0x20, a, b, c, d, e, f, g, h] => {
            Form::Hardware(Guid(u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h])))
        }
        [0xff, a, b, c, d, duid @ ..] => Form::Duid(u32::from_be_bytes([*a, *b, *c, *d]), duid),
        _ => Form::Other,
    }
}

/// Bytes of a DUID behind its type that systemd-networkd can hold (`MAX_DUID_LEN` of
/// dhcp-identifier.h).
const NETWORKD_DUID: usize = 128;

/// The type of a DUID in a word of networkd.conf(5), and the bytes behind the type. None:
/// systemd 252 has no word for the type, or refuses the length (`dhcp_validate_duid_len` of
/// dhcp-identifier.c).
pub fn networkd_duid(duid: &[u8]) -> Option<(&'static str, &[u8])> {
    let (kind, data) = duid.split_first_chunk()?;
    match (kind, data.len()) {
        ([0, 1], 7..=NETWORKD_DUID) => Some(("link-layer-time", data)),
        ([0, 2], 12) => Some(("vendor", data)),
        ([0, 3], 3..=NETWORKD_DUID) => Some(("link-layer", data)),
        ([0, 4], 16) => Some(("uuid", data)),
        _ => None,
    }
}

impl RequestedId {
    /// Whether all interfaces of a port send the same bytes for it.
    pub fn is_of_port(&self) -> bool {
        match self {
            RequestedId::Hardware | RequestedId::PortGuid | RequestedId::Ipxe => true,
            RequestedId::Firmware | RequestedId::Partition(_) | RequestedId::Bytes(_) => false,
        }
    }

    /// Whether the identifier is a port GUID, of whichever interface.
    pub fn is_guid(&self) -> bool {
        match self {
            RequestedId::Firmware | RequestedId::Partition(_) => false,
            RequestedId::PortGuid | RequestedId::Ipxe => false,
            RequestedId::Hardware => true,
            RequestedId::Bytes(bytes) => matches!(form(bytes), Form::Hardware(_)),
        }
    }

    /// Whether systemd-networkd is known to send the identifier in DHCPv4 over InfiniBand
    /// (systemd.network(5), `ClientIdentifier=`). Of GUIDs networkd sends the one that the interface
    /// has at that time.
    pub fn fits_networkd(&self, sender: Sender) -> bool {
        match self {
            // The DUID of the firmware is a byte longer than networkd allows.
            RequestedId::Firmware | RequestedId::Partition(_) => false,
            RequestedId::PortGuid | RequestedId::Ipxe => false,
            RequestedId::Hardware => sender != Sender::Bond,
            RequestedId::Bytes(bytes) => match form(bytes) {
                Form::Hardware(guid) => sender == Sender::Interface(Some(guid)),
                Form::Duid(_, duid) => networkd_duid(duid).is_some(),
                Form::Other => false,
            },
        }
    }

    /// Whether systemd-networkd can send the DUID of the identifier in DHCPv6. The DUID of the
    /// hardware always fits.
    pub fn fits_networkd6(&self) -> bool {
        match self {
            RequestedId::Bytes(bytes) => {
                of_rfc4361(bytes).is_none_or(|identity| networkd_duid(&identity.duid).is_some())
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::unhex;

    const GUID: &str = "b8:59:9f:03:00:fc:1a:2c";

    #[test]
    fn networkd_takes_each_type_of_duid_that_has_a_word_and_the_right_length() {
        for (duid, expected) in [
            ("00:03:00:20:b8:59:9f:03:00:fc:1a:2c", Some("link-layer")),
            ("00:03:00:20", None),
            ("00:01:00:20:2d:00:00:00:aa", Some("link-layer-time")),
            ("00:01:00:20:2d:00:00:00", None),
            ("00:02:00:00:02:c9:b8:59:9f:03:00:fc:1a:2c", Some("vendor")),
            ("00:02:00:00:02:c9:00:b8:59:9f:03:00:fc:1a:2c", None),
            ("00:05:aa", None),
            ("00", None),
        ] {
            let bytes = unhex(duid).unwrap();
            let found = networkd_duid(&bytes);
            let expected = expected.map(|word| (word, bytes.get(2..).unwrap()));
            assert_eq!(found, expected, "{duid}");
        }
        assert_eq!(networkd_duid(&[&[0, 3][..], &[0; 129]].concat()), None);
    }

    #[test]
    fn networkd_sends_no_guid_of_another_interface() {
        let written = |text: &str| RequestedId::Bytes(unhex(text).unwrap());
        let own = written(&format!("20:{GUID}"));
        let guid = Guid(0xb859_9f03_00fc_1a2c);
        let interface = |guid| Sender::Interface(Some(Guid(guid)));
        assert!(own.fits_networkd(interface(guid.0)));
        assert!(!own.fits_networkd(interface(guid.0 + 1)));
        assert!(!own.fits_networkd(Sender::Interface(None)));
        assert!(RequestedId::Hardware.fits_networkd(Sender::Interface(None)));
        assert!(!RequestedId::Hardware.fits_networkd(Sender::Bond));
        let lasting = written(&format!("ff:00:00:00:07:00:03:00:20:{GUID}"));
        assert!(lasting.fits_networkd(Sender::Bond) && lasting.fits_networkd6());
        let odd = written("ff:00:00:00:07:00:05:aa");
        assert!(!odd.fits_networkd6() && own.fits_networkd6());
    }
}
