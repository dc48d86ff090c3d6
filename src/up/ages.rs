// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: since when each port is in its state, with its SM LID: a subnet manager that starts sets the
//! SM LID of a port that may have been INIT for long. A single look cannot tell a subnet manager's sweep
//! from a subnet manager that hangs.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::rdma::types::PortState;
use crate::system::clock::SECOND;

/// State and SM LID.
type State = (Option<PortState>, Option<u32>);

/// By port: its state and the time of the first look that found this state, ns since kernel start.
#[derive(Debug, Default)]
pub struct Ages(BTreeMap<String, (State, u64)>);

impl Ages {
    /// Adds the age of its state to each port.
    pub fn add(&mut self, facts: &mut Facts) {
        let now_ns = facts.taken_ns;
        let mut known = BTreeMap::new();
        for device in &mut facts.devices {
            for port in &mut device.ports {
                let name = format!("{}/{}", device.ifname, port.port);
                let found = (port.state, port.sm_lid);
                let since_ns = match self.0.get(&name) {
                    Some((state, since_ns)) if *state == found => *since_ns,
                    _ => now_ns,
                };
                port.seconds_in_state = Some(now_ns.saturating_sub(since_ns) / SECOND);
                known.insert(name, (found, since_ns));
            }
        }
        self.0 = known;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Device, Port};

    #[test]
    fn a_state_has_the_age_since_the_first_look_that_found_it() {
        let mut ages = Ages::default();
        let mut look = |seconds: u64, states: &[(PortState, u32)]| {
            let port = |(port, (state, sm_lid)): (u32, &(PortState, u32))| Port {
                port,
                state: Some(*state),
                sm_lid: Some(*sm_lid),
                ..Port::default()
            };
            let mut facts = Facts {
                taken_ns: seconds * SECOND,
                devices: vec![Device {
                    ifname: "mlx5_0".to_owned(),
                    ports: (1..).zip(states).map(port).collect(),
                    ..Device::default()
                }],
                ..Facts::default()
            };
            ages.add(&mut facts);
            let ages = facts.ports().map(|port| port.port.seconds_in_state);
            ages.collect::<Option<Vec<u64>>>().unwrap()
        };
        let (init, armed) = ((PortState::Init, 0), (PortState::Armed, 1));
        assert_eq!(look(100, &[init, init]), [0, 0]);
        assert_eq!(look(129, &[init, armed]), [29, 0]);
        assert_eq!(look(140, &[armed, armed]), [0, 11]);
        let begun = (PortState::Init, 1);
        assert_eq!(look(145, &[armed, begun]), [5, 0]);
        assert_eq!(look(150, &[]), [0; 0]);
        assert_eq!(look(160, &[armed]), [0], "the port was gone");
    }
}
