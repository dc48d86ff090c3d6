// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the boot as gauges in Prometheus' text format: its verdict, and when each phase ended.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::handover::{Mark, Outcome, Phase, State};
use crate::system::clock::seconds;
use crate::verify::monitoring::{family, sample};

/// The gauges of a boot. Times are seconds since kernel start (`CLOCK_BOOTTIME`).
pub fn of(state: &State) -> String {
    let outcome = |one: Outcome| {
        let set = u8::from(one == state.outcome);
        sample(&[("outcome", &json_name(one))], &set)
    };
    let is_phase = |mark: &&Mark| mark.phase != Phase::Wait;
    let marks = latest(state.marks.iter().filter(is_phase));
    let reached = |mark: &&Mark| of_phase(mark, mark.end_ns.unwrap_or(mark.start_ns));
    let took = |mark: &&Mark| {
        let took = mark.end_ns?.saturating_sub(mark.start_ns);
        Some(of_phase(mark, took))
    };
    let waited = waited(&state.marks).into_iter();
    let waited = waited.map(|((object, awaited), ns)| {
        let labels = [("object", object), ("awaited", &awaited)];
        sample(&labels, &seconds(ns))
    });
    [
        family(
            "ibboot_boot_outcome",
            "Verdict in the initramfs: verified, or what followed the failure.",
            &Outcome::ALL.map(outcome),
        ),
        family(
            "ibboot_boot_phase_seconds",
            "When a phase of the boot ended, in seconds since kernel start.",
            &marks.iter().map(reached).collect::<Vec<_>>(),
        ),
        family(
            "ibboot_boot_duration_seconds",
            "How long a phase of the boot took.",
            &marks.iter().filter_map(took).collect::<Vec<_>>(),
        ),
        family(
            "ibboot_boot_wait_seconds",
            "How long a link or a server waited during the boot, and for what.",
            &waited.collect::<Vec<_>>(),
        ),
    ]
    .concat()
}

/// By object and reason: the sum of the waits, ns.
fn waited(marks: &[Mark]) -> BTreeMap<(&str, String), u64> {
    let mut sums = BTreeMap::new();
    for mark in marks {
        if let (Some(awaited), Some(end_ns)) = (mark.awaited, mark.end_ns) {
            let sum = sums.entry((mark.object.as_str(), json_name(awaited)));
            let sum: &mut u64 = sum.or_default();
            *sum = sum.saturating_add(end_ns.saturating_sub(mark.start_ns));
        }
    }
    sums
}

/// The last mark of each phase and object (a lease that was lost is granted again): Prometheus
/// refuses a file in which two samples have the same labels.
fn latest<'a>(marks: impl Iterator<Item = &'a Mark>) -> Vec<&'a Mark> {
    let mut found: Vec<&Mark> = Vec::new();
    for mark in marks {
        found.retain(|one| (one.phase, &one.object) != (mark.phase, &mark.object));
        found.push(mark);
    }
    found
}

fn of_phase(mark: &Mark, ns: u64) -> String {
    let phase = json_name::<Phase>(mark.phase);
    let labels = [("phase", phase.as_str()), ("object", &mark.object)];
    sample(&labels, &seconds(ns))
}

/// The name of a unit variant as state.json spells it.
fn json_name<T: serde::Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_granted_twice_is_one_sample() {
        let lease = |start_ns, end_ns| Mark {
            phase: Phase::Lease,
            object: "ib0".to_owned(),
            start_ns,
            end_ns: Some(end_ns),
            ..Mark::default()
        };
        let marks = [lease(1, 2), lease(5, 9)];
        assert_eq!(latest(marks.iter()), [&marks[1]]);
        let text = of_phase(&lease(1_000_000_000, 3_500_000_000), 2_500_000_000);
        assert_eq!(text, "{phase=\"lease\",object=\"ib0\"} 2.500");
    }
}
