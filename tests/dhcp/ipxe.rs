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

/// The six bytes, as text.
fn six_bytes() -> String {
    let link = ip("-o link show near");
    let (_, address) = link.split_once("link/ether ").unwrap();
    address.split(' ').next().unwrap().to_owned()
}

/// ibboot with iPXE's client identifier.
fn with_the_id_of_ipxe() -> Config {
    infiniband_that_sends(&RequestedId::Bytes(ethernet().identity.client_id))
}

/// The addresses that iPXE, ibboot and iPXE of the next boot get.
fn boots(ibboot: Config) -> [String; 3] {
    [ethernet(), ibboot, ethernet()].map(|config| Node::new(config).boot(None).address_text())
}

const RESERVED: &str = "10.9.0.55/24";

#[test]
fn dnsmasq_keeps_the_address_from_ipxe_while_ibboot_has_the_lease() {
    with_network("dnsmasq, iPXE", &["dnsmasq"], || {
        let host = format!("--dhcp-host={},id:{CLIENT_ID},10.9.0.55,node5", six_bytes());
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
        let six = six_bytes();
        let host = format!("--dhcp-host={six},id:01:{six},10.9.0.55,node5");
        let _server = dnsmasq(&[RANGE, &host]);
        assert_eq!(boots(with_the_id_of_ipxe()), [RESERVED; 3]);
    });
}

#[test]
fn dhcpd_gives_one_address_for_the_six_bytes_and_the_identifier() {
    with_network("dhcpd, iPXE", &["dhcpd"], || {
        let host = format!(
            "host node5 {{ option dhcp-client-identifier {CLIENT_ID}; hardware ethernet {}; fixed-address 10.9.0.55; }}",
            six_bytes()
        );
        let _server = dhcpd("far", &subnet(&host));
        assert_eq!(boots(infiniband()), [RESERVED; 3]);
    });
}

/// xCAT's `makedhcp` makes such an entry.
#[test]
fn dhcpd_knows_the_node_by_its_bare_guid() {
    with_network("dhcpd, bare GUID", &["dhcpd"], || {
        let host = "host node5 { hardware infiniband 00:02:c9:03:00:0a:1b:2c; \
                    option dhcp-client-identifier 00:02:c9:03:00:0a:1b:2c; fixed-address 10.9.0.55; }";
        let _server = dhcpd("far", &subnet(host));
        let guid = RequestedId::Bytes(vec![0, 2, 0xc9, 3, 0, 0x0a, 0x1b, 0x2c]);
        let lease = Node::new(infiniband_that_sends(&guid)).boot(None);
        assert_eq!(lease.address_text(), RESERVED);
        let lease = Node::new(infiniband()).boot(None);
        assert_ne!(lease.address_text(), RESERVED);
    });
}
