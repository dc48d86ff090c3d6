// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what a server's answer says, as values. The answer is decoded where no power is
//! ([`decoder`](crate::system::decoder)); the client sees only these values.

use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::information::Information;
use super::lease::{Lease, Refusal};
use super::packet::{DUID, Kind, LARGEST, Message, TRANSACTION, is_longest_wait, option};
use crate::system::decoder::{Format, is_line};

/// What the client knows about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Source address of the message.
    pub from: Ipv6Addr,
    /// IAID of the client; none: the client requests only settings.
    pub iaid: Option<u32>,
    /// The requested address, which is taken of several.
    pub requested: Option<Ipv6Addr>,
}

/// A message to a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Type of the message.
    pub kind: Kind,
    /// Source address.
    pub from: Ipv6Addr,
    /// Transaction, 24 bits.
    pub transaction: u32,
    /// Option 1.
    pub client_id: Option<Vec<u8>>,
    /// Option 2, if it is a DUID.
    pub server_id: Option<Vec<u8>>,
    /// Option 14.
    pub is_rapid: bool,
    /// Option 7, or 0.
    pub preference: u8,
    /// Option 82, in seconds.
    pub sol_max_rt_s: Option<u32>,
    /// Option 83, in seconds.
    pub inf_max_rt_s: Option<u32>,
    /// What the message grants, requested at the time 0; or why the message grants nothing.
    pub lease: Result<Lease, Refusal>,
    /// The message withdraws the requested address.
    pub is_withdrawn: bool,
    /// The settings, for a client that requests only settings.
    pub information: Result<Information, Refusal>,
    /// The message in one line of the debug log.
    pub summary: String,
}

impl Answer {
    /// The answer in a message.
    pub fn of(message: &Message, context: &Context) -> Answer {
        let Context {
            from,
            iaid,
            requested,
        } = *context;
        let lease = match iaid {
            Some(iaid) => Lease::of(message, from, iaid, requested, 0),
            None => Err(Refusal::Unusable("no addresses requested".into())),
        };
        let is_withdrawn = iaid.zip(requested);
        let is_withdrawn =
            is_withdrawn.is_some_and(|(iaid, address)| Lease::is_withdrawn(message, iaid, address));
        let preference = match message.options.first(option::PREFERENCE) {
            Some([preference]) => *preference,
            _ => 0,
        };
        Answer {
            kind: message.kind,
            from,
            transaction: message.transaction,
            client_id: message.options.first(option::CLIENT_ID).map(<[u8]>::to_vec),
            server_id: message.duid(option::SERVER_ID).map(<[u8]>::to_vec),
            is_rapid: message.options.first(option::RAPID_COMMIT).is_some(),
            preference,
            sol_max_rt_s: message.longest_wait_s(option::SOL_MAX_RT),
            inf_max_rt_s: message.longest_wait_s(option::INF_MAX_RT),
            lease,
            is_withdrawn,
            information: Information::of(message, from),
            summary: message.summary(),
        }
    }

    fn is_sound(&self, context: &Context) -> bool {
        let is_wait = |seconds: Option<u32>| seconds.is_none_or(is_longest_wait);
        let is_possible = |refusal: &Refusal| refusal.is_sound();
        let is_of_sender = |lease: &Lease| lease.server == context.from && lease.is_sound();
        self.from == context.from
            && is_sender(self.from)
            && self.transaction <= TRANSACTION
            && self.client_id.as_ref().is_none_or(|id| id.len() <= LARGEST)
            && self.server_id.as_ref().is_none_or(|id| id.len() <= DUID)
            && is_wait(self.sol_max_rt_s)
            && is_wait(self.inf_max_rt_s)
            && self.lease.as_ref().map_or_else(is_possible, is_of_sender)
            && self
                .information
                .as_ref()
                .map_or_else(is_possible, |known| known.is_sound(context))
            && is_line(&self.summary)
    }
}

/// Messages to the port of a client; an error is a line that says why the bytes are no message.
#[derive(Debug)]
pub struct Answers;

impl Format for Answers {
    const NAME: &'static str = "dhcp6";
    type Context = Context;
    type Value = Result<Box<Answer>, String>;

    fn decode(context: &Context, bytes: &[u8]) -> Self::Value {
        if !is_sender(context.from) {
            return Err("the source address is not that of a host".to_owned());
        }
        match Message::decode(bytes) {
            Ok(message) => Ok(Box::new(Answer::of(&message, context))),
            Err(why) => Err(why.to_string()),
        }
    }

    fn is_sound(context: &Context, value: &Self::Value) -> bool {
        match value {
            Ok(answer) => answer.is_sound(context),
            Err(why) => is_line(why),
        }
    }
}

/// Whether a host can have sent a message from this address. The kernel also passes on packets from
/// `::`.
fn is_sender(from: Ipv6Addr) -> bool {
    !from.is_unspecified() && !from.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcp::v6::packet::{Address, Association, Options};
    use proptest::prelude::*;

    const CONTEXT: Context = Context {
        from: Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
        iaid: Some(7),
        requested: None,
    };

    fn message(more: Vec<(u16, Vec<u8>)>) -> Message {
        let mut association = Association::asking(7, None);
        let granted = Address {
            address: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 5),
            preferred_s: 300,
            valid_s: 600,
            options: Options::default(),
        };
        association
            .options
            .push(option::IA_ADDRESS, granted.encode());
        let mut message = Message::new(Kind::Reply, 9);
        for (code, value) in more {
            message.options.push(code, value);
        }
        message.options.push(option::SERVER_ID, [0, 3, 0, 1]);
        message.options.push(option::IA_NA, association.encode());
        message
    }

    fn decoded(message: &Message) -> Result<Box<Answer>, String> {
        decoded_with(&CONTEXT, message)
    }

    fn decoded_with(context: &Context, message: &Message) -> Result<Box<Answer>, String> {
        let value = Answers::decode(context, &message.encode());
        serde_json::from_str(&serde_json::to_string(&value).unwrap()).unwrap()
    }

    #[test]
    fn a_decoder_cannot_say_more_than_a_server() {
        let sound = decoded(&message(Vec::new()));
        assert!(Answers::is_sound(&CONTEXT, &sound));
        let lies: [fn(&mut Lease); 12] = [
            |lease| lease.address = Ipv6Addr::LOCALHOST,
            |lease| lease.address = Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 1),
            |lease| lease.server = lease.address,
            |lease| lease.server_id = "../..".to_owned(),
            |lease| lease.server = Ipv6Addr::UNSPECIFIED,
            |lease| lease.seconds = 1,
            |lease| lease.rebind_s = 601,
            |lease| lease.preferred_s = 601,
            |lease| lease.name_servers = vec![Ipv6Addr::LOCALHOST],
            |lease| lease.left_out.push("a\nb".to_owned()),
            |lease| lease.name_servers = vec![lease.address; 17],
            |lease| lease.domain_search.push("a\nb".to_owned()),
        ];
        for (number, change) in lies.into_iter().enumerate() {
            let mut value = sound.clone();
            change(value.as_mut().unwrap().lease.as_mut().unwrap());
            assert!(!Answers::is_sound(&CONTEXT, &value), "lie {number}");
        }
        let other: [fn(&mut Answer); 4] = [
            |answer| answer.from = Ipv6Addr::LOCALHOST,
            |answer| answer.transaction = u32::MAX,
            |answer| answer.sol_max_rt_s = Some(u32::MAX),
            |answer| answer.information.as_mut().unwrap().server = Ipv6Addr::LOCALHOST,
        ];
        for (number, change) in other.into_iter().enumerate() {
            let mut value = sound.clone();
            change(value.as_mut().unwrap());
            assert!(!Answers::is_sound(&CONTEXT, &value), "lie {number}");
        }
    }

    #[test]
    fn a_message_from_no_host_is_refused() {
        for from in [
            Ipv6Addr::UNSPECIFIED,
            Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        ] {
            let context = Context { from, ..CONTEXT };
            let value = decoded_with(&context, &message(Vec::new()));
            let why = "the source address is not that of a host".to_owned();
            assert_eq!(value, Err(why));
            assert!(Answers::is_sound(&context, &value));
        }
    }

    prop_compose! {
        fn contexts()(
            from in prop_oneof![
                Just(CONTEXT.from),
                Just(Ipv6Addr::UNSPECIFIED),
                Just(Ipv6Addr::LOCALHOST),
                any::<Ipv6Addr>(),
            ],
            iaid in prop_oneof![Just(CONTEXT.iaid), Just(None)],
            requested in any::<Option<Ipv6Addr>>(),
        ) -> Context {
            Context { from, iaid, requested }
        }
    }

    proptest! {
        #[test]
        fn what_is_decoded_is_believed(
            context in contexts(),
            options in prop::collection::vec(
                (0_u16..90, prop::collection::vec(any::<u8>(), 0..60)), 0..6,
            ),
        ) {
            let value = decoded_with(&context, &message(options));
            prop_assert!(Answers::is_sound(&context, &value), "{:?}", value);
        }

        #[test]
        fn any_packet_is_believed(
            context in contexts(),
            bytes in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            let value = Answers::decode(&context, &bytes);
            prop_assert!(Answers::is_sound(&context, &value));
        }
    }
}
