// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the identity of a client: hardware type, hardware address and client identifier.

use crate::dhcp::identity::RequestedId;
use crate::hardware::HardwareType;

/// The DUID of FlexBoot and UEFI of ConnectX cards, before the port GUID: of an enterprise (2) with
/// Mellanox's OUI as its number (RFC 8415 11.3).
const FLEXBOOT: [u8; 7] = [0, 2, 0, 0, 2, 0xc9, 0];

/// The hardware type of iPXE's identifier: ARPHRD_ETHER, over InfiniBand too.
const ETHERNET: u8 = 1;

/// The identifier that this firmware sends: type 255, IAID, DUID (RFC 4361). The IAID is 0.
fn of_firmware(iaid: u16, guid: &[u8]) -> Vec<u8> {
    [&[0xff, 0, 0], &iaid.to_be_bytes()[..], &FLEXBOOT, guid].concat()
}

/// The identity of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// ARP hardware type.
    pub hardware_type: HardwareType,
    /// Hardware address: 20 bytes on InfiniBand.
    pub hardware: Vec<u8>,
    /// Option 61.
    pub client_id: Vec<u8>,
}

impl Identity {
    /// `None` for hardware that this program does not run DHCP on.
    pub fn new(
        hardware_type: HardwareType,
        hardware: &[u8],
        requested: &RequestedId,
    ) -> Option<Identity> {
        // Only the last 8 bytes of an IPoIB address stay the same across boots.
        let lasting = match (hardware_type, hardware.len()) {
            (HardwareType::Ethernet, 6) => hardware,
            (HardwareType::InfiniBand, 20) => hardware.get(12..)?,
            _ => return None,
        };
        let client_id = match (requested, lasting) {
            (RequestedId::Bytes(bytes), _) => bytes.clone(),
            (RequestedId::Firmware, [_, _, _, _, _, _, _, _]) => of_firmware(0, lasting),
            (RequestedId::Partition(pkey), [_, _, _, _, _, _, _, _]) => of_firmware(*pkey, lasting),
            (RequestedId::PortGuid, [_, _, _, _, _, _, _, _]) => lasting.to_vec(),
            (RequestedId::Ipxe, [a, b, c, _, _, d, e, f]) => vec![ETHERNET, *a, *b, *c, *d, *e, *f],
            _ => {
                let kind = u8::try_from(hardware_type.number()).ok()?;
                [&[kind], lasting].concat()
            }
        };
        Some(Identity {
            hardware_type,
            hardware: hardware.to_vec(),
            client_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{Hex, unhex};

    const IPOIB: &str = "80:00:00:48:fe:80:00:00:00:00:00:00:b8:59:9f:03:00:fc:1a:2c";

    fn id(hardware_type: HardwareType, hardware: &str, requested: &RequestedId) -> Option<String> {
        let hardware = unhex(hardware).unwrap();
        let identity = Identity::new(hardware_type, &hardware, requested)?;
        Some(Hex(&identity.client_id).to_string())
    }

    #[test]
    fn the_identifier_is_the_firmwares_unless_configured_otherwise() {
        let ib = |requested| id(HardwareType::InfiniBand, IPOIB, &requested).unwrap();
        assert_eq!(
            ib(RequestedId::Firmware),
            "ff:00:00:00:00:00:02:00:00:02:c9:00:b8:59:9f:03:00:fc:1a:2c"
        );
        assert_eq!(
            ib(RequestedId::Partition(0x8001)),
            "ff:00:00:80:01:00:02:00:00:02:c9:00:b8:59:9f:03:00:fc:1a:2c"
        );
        assert_eq!(ib(RequestedId::Hardware), "20:b8:59:9f:03:00:fc:1a:2c");
        assert_eq!(ib(RequestedId::PortGuid), "b8:59:9f:03:00:fc:1a:2c");
        assert_eq!(ib(RequestedId::Ipxe), "01:b8:59:9f:fc:1a:2c");
        assert_eq!(ib(RequestedId::Bytes(b"node5".to_vec())), "6e:6f:64:65:35");
        let ethernet = "52:54:00:12:34:56";
        for requested in [
            RequestedId::Firmware,
            RequestedId::Partition(0x8001),
            RequestedId::Hardware,
            RequestedId::PortGuid,
            RequestedId::Ipxe,
        ] {
            assert_eq!(
                id(HardwareType::Ethernet, ethernet, &requested).unwrap(),
                "01:52:54:00:12:34:56"
            );
        }
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
            None
        );
    }
}
