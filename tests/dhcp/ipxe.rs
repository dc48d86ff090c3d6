// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations that serve iPXE and ibboot (docs/guides/dhcp-servers.md). iPXE has six bytes of
//! hardware address and sends 01 and these bytes as its client identifier, as an Ethernet node does.

use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v4::client::Config;

use super::network::{
    CLIENT_ID, Node, ethernet, infiniband, infiniband_that_sends, ip, with_network,
};
use super::others::{dhcpd, subnet};
use super::servers::dnsmasq;

const RANGE: &str = "--dhcp-range=10.9.0.10,10.9.0.20,255.255.255.0,1h";

/// iPXE's address of the node whose IPoIB address the clients of these tests have.
const SIX_BYTES: &str = "00:02:c9:0a:1b:2c";

/// The addresses that iPXE, ibboot and iPXE of the next boot get.
fn boots(ibboot: Config) -> [String; 3] {
    ip(&format!("link set near address {SIX_BYTES}"));
    [ethernet(), ibboot, ethernet()].map(|config| Node::new(config).boot(None).address_text())
}

const RESERVED: &str = "10.9.0.55/24";

#[test]
fn dnsmasq_keeps_the_address_from_ipxe_while_ibboot_has_the_lease() {
    with_network("dnsmasq, iPXE", &["dnsmasq"], || {
        let host = format!("--dhcp-host={SIX_BYTES},id:{CLIENT_ID},10.9.0.55,node5");
        let server = dnsmasq(&[RANGE, &host]);
        let [first, ibboot, second] = boots(infiniband());
        assert_eq!([first.as_str(), ibboot.as_str()], [RESERVED; 2]);
        assert_ne!(second, RESERVED);
        let why = "not using configured address 10.9.0.55 because it is leased to";
        assert!(server.output().contains(why), "{}", server.output());
    });
}

#[test]
fn dnsmasq_gives_one_address_for_the_identifier_of_ipxe() {
    with_network("dnsmasq, identifier of iPXE", &["dnsmasq"], || {
        let host = format!("--dhcp-host={SIX_BYTES},id:01:{SIX_BYTES},10.9.0.55,node5");
        let _server = dnsmasq(&[RANGE, &host]);
        assert_eq!(
            boots(infiniband_that_sends(&RequestedId::Ipxe)),
            [RESERVED; 3]
        );
    });
}

#[test]
fn dhcpd_gives_one_address_for_the_six_bytes_and_the_identifier() {
    with_network("dhcpd, iPXE", &["dhcpd"], || {
        for (id, ibboot) in [
            (CLIENT_ID, infiniband()),
            (
                "01:00:02:c9:0a:1b:2c",
                infiniband_that_sends(&RequestedId::Ipxe),
            ),
        ] {
            let host = format!(
                "host node5 {{ option dhcp-client-identifier {id}; hardware ethernet {SIX_BYTES}; \
                 fixed-address 10.9.0.55; }}"
            );
            let _server = dhcpd("far", &subnet(&host));
            assert_eq!(boots(ibboot), [RESERVED; 3]);
        }
    });
}

/// xCAT's `makedhcp` makes such an entry.
#[test]
fn dhcpd_knows_the_node_by_its_bare_guid() {
    with_network("dhcpd, bare GUID", &["dhcpd"], || {
        let host = "host node5 { hardware infiniband 00:02:c9:03:00:0a:1b:2c; \
                    option dhcp-client-identifier 00:02:c9:03:00:0a:1b:2c; fixed-address 10.9.0.55; }";
        let _server = dhcpd("far", &subnet(host));
        let lease = Node::new(infiniband_that_sends(&RequestedId::PortGuid)).boot(None);
        assert_eq!(lease.address_text(), RESERVED);
        let lease = Node::new(infiniband()).boot(None);
        assert_ne!(lease.address_text(), RESERVED);
    });
}
