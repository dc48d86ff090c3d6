// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a server's answer says, as values. The answer is decoded where no power is
//! ([`decoder`](crate::system::decoder)); the client sees only these values.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::frame;
use super::lease::Lease;
use super::packet::{Kind, Message, option};
use crate::dhcp::brake::Reason;
use crate::system::decoder::{Format, LINE, is_line};

/// A message to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// 2: from a server.
    pub op: u8,
    /// Option 53.
    pub kind: Kind,
    /// Transaction.
    pub xid: u32,
    /// ARP hardware type.
    pub htype: u8,
    /// Length of the hardware address, as received.
    pub hlen: u8,
    /// The client's hardware address field.
    pub chaddr: [u8; 16],
    /// The granted address.
    pub yiaddr: Ipv4Addr,
    /// Broadcast address of the network of `yiaddr`, by option 1.
    pub broadcast: Option<Ipv4Addr>,
    /// Option 61.
    pub client_id: Option<Vec<u8>>,
    /// Option 54.
    pub server: Option<Ipv4Addr>,
    /// Option 56: for people; may contain control characters.
    pub words: String,
    /// What the message grants, requested at the time 0; or why the message grants nothing.
    pub grant: Result<Grant, Reason>,
    /// The message in one line of the debug log.
    pub summary: String,
}

/// A lease with its possible secrets: serde leaves them out of a [`Lease`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    lease: Lease,
    root_path: Option<String>,
    tftp_server: Option<String>,
    boot_file: Option<String>,
}

impl From<Lease> for Grant {
    fn from(lease: Lease) -> Grant {
        Grant {
            root_path: lease.root_path.clone(),
            tftp_server: lease.tftp_server.clone(),
            boot_file: lease.boot_file.clone(),
            lease,
        }
    }
}

impl Grant {
    /// The lease, requested at this time (ns since kernel start).
    pub fn lease(&self, requested_ns: u64) -> Lease {
        Lease {
            requested_ns,
            root_path: self.root_path.clone(),
            tftp_server: self.tftp_server.clone(),
            boot_file: self.boot_file.clone(),
            ..self.lease.clone()
        }
    }
}

impl Answer {
    /// The answer in a message.
    pub fn of(message: &Message) -> Answer {
        let words = message.option(option::MESSAGE).unwrap_or_default();
        let words = String::from_utf8_lossy(words);
        let mask = message.address(option::MASK);
        Answer {
            op: message.op,
            kind: message.kind,
            xid: message.xid,
            htype: message.htype,
            hlen: message.hlen,
            chaddr: message.chaddr,
            yiaddr: message.yiaddr,
            broadcast: mask.map(|mask| message.yiaddr | !mask),
            client_id: message.option(option::CLIENT_ID).map(<[u8]>::to_vec),
            server: message.address(option::SERVER),
            words: words.trim_end_matches('\0').to_owned(),
            grant: Lease::of(message, 0).map(Grant::from),
            summary: message.summary(),
        }
    }

    fn is_sound(&self) -> bool {
        let is_sound = match &self.grant {
            Ok(grant) => grant.lease(0).is_sound(),
            Err(why) => why.is_sound(),
        };
        is_sound && self.words.len() <= LINE && is_line(&self.summary)
    }
}

/// A packet from the socket of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// No packet to the port of a client.
    Foreign,
    /// Not a message of DHCP, for this reason.
    Malformed {
        /// The sender.
        from: Ipv4Addr,
        /// One line.
        why: String,
    },
    /// A message.
    Answer {
        /// The sender.
        from: Ipv4Addr,
        /// Destination of the packet.
        to: Ipv4Addr,
        /// The message.
        answer: Box<Answer>,
    },
}

/// IP packets of a [`PacketSocket`](super::socket::PacketSocket). The context: the UDP checksum is
/// not filled in.
#[derive(Debug)]
pub struct Answers;

impl Format for Answers {
    const NAME: &'static str = "dhcp";
    type Context = bool;
    type Value = Heard;

    fn decode(unsummed: &bool, bytes: &[u8]) -> Heard {
        let Some(datagram) = frame::to_client(bytes, *unsummed) else {
            return Heard::Foreign;
        };
        let from = datagram.from;
        match Message::decode(datagram.payload) {
            Ok(message) => Heard::Answer {
                from,
                to: datagram.to,
                answer: Box::new(Answer::of(&message)),
            },
            Err(why) => Heard::Malformed {
                from,
                why: why.to_string(),
            },
        }
    }

    fn is_sound(_: &bool, heard: &Heard) -> bool {
        match heard {
            Heard::Foreign => true,
            Heard::Malformed { why, .. } => is_line(why),
            Heard::Answer { answer, .. } => answer.is_sound(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v4::lease::Route;
    use proptest::prelude::*;

    fn message(options: Vec<(u8, Vec<u8>)>) -> Message {
        let mut message = Message::new(Kind::Ack, 7);
        message.op = 2;
        message.yiaddr = Ipv4Addr::new(10, 0, 0, 5);
        message.options = [
            (option::SERVER, vec![10, 0, 0, 1]),
            (option::MASK, vec![255, 255, 255, 0]),
            (option::LEASE_TIME, vec![0, 0, 2, 88]),
        ]
        .into();
        message.options.extend(options);
        message
    }

    fn packet(message: &Message) -> Vec<u8> {
        let server = Ipv4Addr::new(10, 0, 0, 1);
        let to = Ipv4Addr::BROADCAST;
        let mut packet = frame::to_servers(server, to, &message.encode()).unwrap();
        packet[20..24].copy_from_slice(&[0, 67, 0, 68]);
        // The ports are in the checksum, which is not compared.
        packet
    }

    fn decoded(message: &Message) -> Heard {
        let heard = Answers::decode(&true, &packet(message));
        let text = serde_json::to_string(&heard).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_password_passes_the_decoder() {
        let path = b"nfs://user:secret@10.0.0.1/root".to_vec();
        let heard = decoded(&message(vec![(option::ROOT_PATH, path)]));
        let Heard::Answer { answer, .. } = &heard else {
            panic!("{heard:?}");
        };
        let lease = answer.grant.as_ref().unwrap().lease(9);
        assert_eq!(lease.requested_ns, 9);
        assert_eq!(
            lease.root_path.as_deref(),
            Some("nfs://user:secret@10.0.0.1/root")
        );
        assert!(!lease.is_redacted());
    }

    #[test]
    fn a_decoder_cannot_say_more_than_a_server() {
        let sound = Answer::of(&message(Vec::new()));
        let lie = |change: fn(&mut Answer)| {
            let mut answer = sound.clone();
            change(&mut answer);
            answer.is_sound()
        };
        assert!(lie(|_| {}));
        let route = |network: [u8; 4], prefix, gateway| Route {
            network: network.into(),
            prefix,
            gateway,
        };
        let mut rich = sound.clone();
        let lease = &mut rich.grant.as_mut().unwrap().lease;
        lease.mtu = Some(1280);
        lease.static_routes = vec![
            route([10, 7, 0, 0], 16, Ipv4Addr::UNSPECIFIED),
            route([0, 0, 0, 0], 0, lease.server),
        ];
        assert!(rich.is_sound());
        let lies: [fn(&mut Lease); 24] = [
            |lease| lease.address = Ipv4Addr::LOCALHOST,
            |lease| lease.address = Ipv4Addr::new(10, 0, 0, 255),
            |lease| lease.prefix = 33,
            |lease| lease.prefix = 0,
            |lease| lease.server = lease.address,
            |lease| lease.server = Ipv4Addr::UNSPECIFIED,
            |lease| lease.seconds = 1,
            |lease| lease.renew_s = lease.rebind_s + 1,
            |lease| lease.rebind_s = lease.seconds + 1,
            |lease| lease.routers.push(Ipv4Addr::BROADCAST),
            |lease| lease.routers = vec![lease.server; 1 << 16],
            |lease| lease.name_servers.push(Ipv4Addr::BROADCAST),
            |lease| lease.next_server = Some(Ipv4Addr::BROADCAST),
            |lease| lease.mtu = Some(68),
            |lease| lease.domain_search.push("a b".to_owned()),
            |lease| lease.domain_name = Some("a b".to_owned()),
            |lease| lease.host_name = Some("a b".to_owned()),
            |lease| lease.left_out.push("a\nb".to_owned()),
            |lease| lease.left_out = vec![String::new(); 1 << 16],
            |lease| lease.static_routes[0].network = lease.address,
            |lease| lease.static_routes[0].network = Ipv4Addr::new(127, 7, 0, 0),
            |lease| lease.static_routes[0].gateway = lease.address,
            |lease| lease.static_routes[1].gateway = Ipv4Addr::UNSPECIFIED,
            |lease| {
                lease.classless_routes = Some(lease.static_routes.clone());
                lease.classless_routes.as_mut().unwrap()[0].prefix = 33;
            },
        ];
        for (number, change) in lies.into_iter().enumerate() {
            let mut answer = rich.clone();
            change(&mut answer.grant.as_mut().unwrap().lease);
            assert!(!answer.is_sound(), "lie {number}");
        }
        assert!(!lie(|answer| answer.summary.push('\u{1b}')));
        assert!(!lie(|answer| answer.grant = Err("\u{1b}".into())));
        assert!(!lie(|answer| {
            answer.grant.as_mut().unwrap().root_path = Some("a\nb".to_owned());
        }));
    }

    proptest! {
        #[test]
        fn what_is_decoded_is_believed(
            options in prop::collection::vec(
                (any::<u8>(), prop::collection::vec(any::<u8>(), 0..60)), 0..6,
            ),
            words in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let heard = decoded(&message(options));
            prop_assert!(Answers::is_sound(&true, &heard), "{:?}", heard);
            let heard = decoded(&message(vec![(option::MESSAGE, words)]));
            prop_assert!(Answers::is_sound(&true, &heard), "{:?}", heard);
        }

        #[test]
        fn any_packet_is_believed(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(Answers::is_sound(&false, &Answers::decode(&false, &bytes)));
        }
    }
}
