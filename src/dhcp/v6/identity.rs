// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the identity of a client: the DUID of a node and the IAID of its interface (RFC 8415 11
//! and 12).

use super::packet::DUID;
use crate::dhcp::identity::RequestedId;
use crate::hardware::{HardwareType, pkey_of_broadcast};

/// Type of a DUID that is based on the link-layer address (RFC 8415 11.4).
const LINK_LAYER: [u8; 2] = [0, 3];
/// First byte of a DHCPv4 client identifier that holds an IAID and a DUID (RFC 4361 6.1).
const RFC4361: u8 = 255;

/// The identity of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Option 1.
    pub duid: Vec<u8>,
    /// The interface of this DUID.
    pub iaid: u32,
}

impl Identity {
    /// `None` for hardware that this program does not run DHCPv6 on. `broadcast` is the interface's
    /// broadcast address: on InfiniBand this address contains the P_Key.
    ///
    /// The DUID is based on the hardware, `00:03:00:20` and the port GUID on InfiniBand: of the 20
    /// bytes of an IPoIB address only the GUID stays the same across boots. The interfaces of a
    /// port, one per partition, share the DUID, so their P_Key is the IAID.
    pub fn new(
        hardware_type: HardwareType,
        hardware: &[u8],
        broadcast: &[u8],
        requested: &RequestedId,
    ) -> Option<Identity> {
        let (lasting, iaid) = match (hardware_type, hardware.len()) {
            (HardwareType::Ethernet, 6) => (hardware, 0),
            (HardwareType::InfiniBand, 20) => {
                (hardware.get(12..)?, pkey_of_broadcast(broadcast)?.into())
            }
            _ => return None,
        };
        if let RequestedId::Bytes(bytes) = requested
            && let Some(identity) = of_rfc4361(bytes)
        {
            return Some(identity);
        }
        let kind = hardware_type.number().to_be_bytes();
        Some(Identity {
            duid: [&LINK_LAYER, &kind, lasting].concat(),
            iaid,
        })
    }
}

/// The identity in a DHCPv4 client identifier, if both protocols share this form.
pub fn of_rfc4361(bytes: &[u8]) -> Option<Identity> {
    let (kind, rest) = bytes.split_first()?;
    let (iaid, duid) = rest.split_first_chunk::<4>()?;
    (*kind == RFC4361 && (3..=DUID).contains(&duid.len())).then(|| Identity {
        duid: duid.to_vec(),
        iaid: u32::from_be_bytes(*iaid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{Hex, unhex};

    const IPOIB: &str = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";
    const PARTITION: &str = "00:ff:ff:ff:ff:12:40:1b:80:01:00:00:00:00:00:00:ff:ff:ff:ff";

    fn id(
        hardware_type: HardwareType,
        hardware: &str,
        requested: &RequestedId,
    ) -> Option<(String, u32)> {
        let (hardware, broadcast) = (unhex(hardware).unwrap(), unhex(PARTITION).unwrap());
        let identity = Identity::new(hardware_type, &hardware, &broadcast, requested)?;
        Some((Hex(&identity.duid).to_string(), identity.iaid))
    }

    #[test]
    fn the_duid_is_the_ports_and_the_number_its_partition() {
        let port = ("00:03:00:20:b8:59:9f:03:00:fc:1a:2c".to_owned(), 0x8001);
        for requested in [
            RequestedId::Firmware,
            RequestedId::Hardware,
            RequestedId::Bytes(b"node5".to_vec()),
            RequestedId::Bytes(vec![255, 0, 0, 0, 7, 0, 4]),
            RequestedId::Bytes(vec![255; 136]),
        ] {
            assert_eq!(
                id(HardwareType::InfiniBand, IPOIB, &requested),
                Some(port.clone())
            );
        }
        let ethernet = ("00:03:00:01:52:54:00:12:34:56".to_owned(), 0);
        let found = id(
            HardwareType::Ethernet,
            "52:54:00:12:34:56",
            &RequestedId::Firmware,
        );
        assert_eq!(found, Some(ethernet));
        assert_eq!(
            id(HardwareType::Ethernet, IPOIB, &RequestedId::Firmware),
            None
        );
        assert_eq!(
            id(
                HardwareType::Other(772),
                "00:00:00:00:00:00",
                &RequestedId::Firmware
            ),
            None,
            "loopback"
        );
    }

    #[test]
    fn an_identifier_of_rfc_4361_is_one_for_both_protocols() {
        let written = vec![255, 0, 0, 0, 7, 0, 2, 0, 0, 2, 0xc9, 0xaa];
        let requested = RequestedId::Bytes(written);
        let found = id(HardwareType::InfiniBand, IPOIB, &requested);
        assert_eq!(found, Some(("00:02:00:00:02:c9:aa".to_owned(), 7)));
    }

    proptest::proptest! {
        #[test]
        fn any_identifier_is_survived(bytes: Vec<u8>) {
            let read = of_rfc4361(&[&[RFC4361], bytes.as_slice()].concat());
            let fits = (7..=4 + DUID).contains(&bytes.len());
            let written = read.map(|read| [&read.iaid.to_be_bytes(), read.duid.as_slice()].concat());
            proptest::prop_assert_eq!(written, fits.then_some(bytes));
        }
    }
}
