// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: recorded port events as a script for the knob `events` of qemu/softib.

use std::fmt::Write as _;

use crate::rdma::events::AsyncKind;

/// An asynchronous event of the port, with its time: CLOCK_BOOTTIME in nanoseconds.
pub type PortEvent = (u64, AsyncKind);

/// A script that makes a softib port report the events after the last DEVICE_FATAL at the recorded
/// distances, beginning with the port's own event of the first kind. None without such an event.
pub fn script(title: &str, events: &[PortEvent]) -> Option<String> {
    let after = events.iter().rposition(|(_, kind)| kind.is_final());
    let mut events = events.iter().skip(after.map_or(0, |at| at + 1)).peekable();
    while events.next_if(|(_, kind)| word(*kind).is_none()).is_some() {}
    let (begin, first) = **events.peek()?;
    let mut script = format!("# {title}\ndrop any\nstart {}\n", word(first)?);
    for (time, kind) in events {
        let ns = time.saturating_sub(begin);
        // softib does not know all events of all kernels.
        _ = match word(*kind) {
            Some(word) => writeln!(script, "{ns} {word}"),
            None => writeln!(script, "# {ns} {kind}"),
        };
    }
    Some(script)
}

/// softib's word for an event.
fn word(kind: AsyncKind) -> Option<String> {
    match kind {
        AsyncKind::Other(_) | AsyncKind::Gone => None,
        kind => Some(kind.to_string().to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_counts_from_the_first_event() {
        let events = [
            (1_000, AsyncKind::DeviceFatal),
            (5_000, AsyncKind::Other(19)),
            (7_000, AsyncKind::PortErr),
            (2_113_007_000, AsyncKind::LidChange),
            (2_113_007_000, AsyncKind::Other(19)),
            (2_113_907_000, AsyncKind::PortActive),
        ];
        let expected = "# mlx5_0/1\n\
                        drop any\n\
                        start port_err\n\
                        0 port_err\n\
                        2113000000 lid_change\n\
                        # 2113000000 event 19\n\
                        2113900000 port_active\n";
        assert_eq!(script("mlx5_0/1", &events).as_deref(), Some(expected));
    }

    #[test]
    fn without_an_event_of_the_port_there_is_no_trace() {
        assert_eq!(script("x", &[]), None);
        assert_eq!(
            script("x", &[(1, AsyncKind::PortActive), (2, AsyncKind::Gone)]),
            None
        );
        assert_eq!(script("x", &[(1, AsyncKind::Other(30))]), None);
    }
}
