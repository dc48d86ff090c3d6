// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: whether the walk is over, and which verdict follows.

/// The facts that decide the next step of the walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Situation {
    /// SIGTERM has arrived.
    pub is_stopped: bool,
    /// The deadline has passed.
    pub is_late: bool,
    /// The required links are verified.
    pub is_satisfied: bool,
    /// Every link is verified.
    pub is_complete: bool,
    /// No later event can satisfy the requirement.
    pub is_hopeless: bool,
    /// A kernel module is not loaded yet.
    pub is_loading: bool,
    /// A driver still initialises HCAs, or adds PCI functions.
    pub is_probing: bool,
    /// All ports of the machine are required.
    pub needs_every_port: bool,
    /// What comes while drivers load, or a name that udev gives, may show that other ports count or
    /// that a port has a minimum rate.
    pub is_undecided: bool,
    /// udev may still name an interface.
    pub is_naming: bool,
    /// An ARP probe for a static address runs.
    pub is_claiming: bool,
    /// A write has begun and may soon end: what was found may be older than its effect.
    pub is_writing: bool,
    /// The walk must wait for a part.
    pub is_busy: bool,
    /// In an initramfs: the walk also waits for links that are not required, until the deadline.
    pub lingers: bool,
}

/// What the walk does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Waits without a verdict.
    Wait,
    /// Reports that the requirement is verified, and waits for the rest.
    Linger,
    /// Reports that the requirement is verified, and ends.
    End,
    /// Like [`Step::End`], and logs what is missing at the deadline.
    EndIncomplete,
    /// Reports that the requirement has failed, and ends.
    GiveUp,
}

impl Situation {
    /// What the walk does after a look.
    pub fn next_step(&self) -> Step {
        // The ports of the machine are known when all drivers have probed: with async_probe modprobe
        // returns earlier, and udev loads drivers too. At the deadline the ports count that are there.
        let needs_drivers = self.needs_every_port || self.is_undecided && !self.is_late;
        let is_naming = self.is_undecided && !self.is_late && self.is_naming;
        let are_drivers_busy = self.is_loading || self.is_probing;
        let is_open = self.is_writing || is_naming || needs_drivers && are_drivers_busy;
        let is_verified = self.is_satisfied && !is_open;
        // An address stays set after the walk: first its probe must end.
        if self.is_stopped && !self.is_claiming {
            return match is_verified {
                true => Step::End,
                false => Step::GiveUp,
            };
        }
        if !is_verified {
            let is_lost =
                self.is_hopeless && !self.is_writing && !are_drivers_busy && !self.is_claiming;
            return if is_lost || self.is_late {
                Step::GiveUp
            } else {
                Step::Wait
            };
        }
        let is_enough = self.is_complete || !self.lingers;
        if is_enough && !self.is_loading && !self.is_busy {
            Step::End
        } else if self.is_late {
            Step::EndIncomplete
        } else {
            Step::Linger
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(change: impl Fn(&mut Situation)) -> Step {
        let mut situation = Situation {
            is_satisfied: true,
            is_complete: true,
            lingers: true,
            ..Situation::default()
        };
        change(&mut situation);
        situation.next_step()
    }

    #[test]
    fn the_walk_ends_when_everything_is_verified_and_nothing_is_open() {
        assert_eq!(step(|_| ()), Step::End);
        for open in [
            |s: &mut Situation| s.is_complete = false,
            |s: &mut Situation| s.is_loading = true,
            |s: &mut Situation| s.is_busy = true,
        ] {
            assert_eq!(step(open), Step::Linger);
            let late = |s: &mut Situation| {
                open(s);
                s.is_late = true;
            };
            assert_eq!(step(late), Step::EndIncomplete);
        }
        assert_eq!(step(|s| s.is_late = true), Step::End);
        let no_waiting = |s: &mut Situation| (s.is_complete, s.lingers) = (false, false);
        assert_eq!(step(no_waiting), Step::End);
    }

    #[test]
    fn the_walk_waits_for_required_links_until_the_deadline_or_until_they_are_hopeless() {
        assert_eq!(step(|s| s.is_satisfied = false), Step::Wait);
        let late = |s: &mut Situation| (s.is_satisfied, s.is_late) = (false, true);
        assert_eq!(step(late), Step::GiveUp);
        let hopeless = |s: &mut Situation| (s.is_satisfied, s.is_hopeless) = (false, true);
        // An address stays set after the walk: first its probe must end.
        let claiming = |s: &mut Situation| {
            hopeless(s);
            s.is_claiming = true;
        };
        assert_eq!(step(claiming), Step::Wait);
        assert_eq!(step(hopeless), Step::GiveUp);
        let loading = |s: &mut Situation| {
            hopeless(s);
            s.is_loading = true;
        };
        assert_eq!(step(loading), Step::Wait, "a driver may bring another port");
        let overdue = |s: &mut Situation| {
            claiming(s);
            s.is_late = true;
        };
        assert_eq!(step(overdue), Step::GiveUp, "the deadline is the end");
        let probing = |s: &mut Situation| {
            hopeless(s);
            s.is_probing = true;
        };
        assert_eq!(step(probing), Step::Wait, "so may one that is loaded");
        assert_eq!(step(|s| s.is_hopeless = true), Step::End);
    }

    #[test]
    fn all_ports_are_known_when_all_drivers_are_loaded() {
        for open in [
            |s: &mut Situation| s.is_loading = true,
            |s: &mut Situation| s.is_probing = true,
        ] {
            let loading = |s: &mut Situation| {
                s.needs_every_port = true;
                open(s);
            };
            assert_eq!(step(loading), Step::Wait);
            let late = |s: &mut Situation| {
                loading(s);
                s.is_late = true;
            };
            assert_eq!(step(late), Step::GiveUp);
        }
        assert_eq!(step(|s| s.is_probing = true), Step::End);
        assert_eq!(step(|s| s.needs_every_port = true), Step::End);
    }

    #[test]
    fn the_ports_that_count_are_known_when_the_drivers_have_probed() {
        let undecided = |s: &mut Situation| (s.is_undecided, s.is_probing) = (true, true);
        assert_eq!(step(undecided), Step::Wait);
        let late = |s: &mut Situation| {
            undecided(s);
            s.is_late = true;
        };
        assert_eq!(step(late), Step::End);
        assert_eq!(step(|s| s.is_undecided = true), Step::End);
    }

    #[test]
    fn the_interface_of_a_minimum_rate_may_still_get_its_name() {
        let naming = |s: &mut Situation| (s.is_undecided, s.is_naming) = (true, true);
        assert_eq!(step(naming), Step::Wait);
        let late = |s: &mut Situation| {
            naming(s);
            s.is_late = true;
        };
        assert_eq!(step(late), Step::End);
        assert_eq!(step(|s| s.is_naming = true), Step::End);
    }

    #[test]
    fn no_verdict_is_given_while_a_write_may_soon_end() {
        let writing = |s: &mut Situation| (s.is_writing, s.is_busy) = (true, true);
        assert_eq!(step(writing), Step::Wait);
        let hopeless = |s: &mut Situation| {
            writing(s);
            s.is_hopeless = true;
        };
        assert_eq!(step(hopeless), Step::Wait);
        let unsatisfied = |s: &mut Situation| {
            hopeless(s);
            s.is_satisfied = false;
        };
        assert_eq!(step(unsatisfied), Step::Wait);
        let late = |s: &mut Situation| {
            writing(s);
            s.is_late = true;
        };
        assert_eq!(step(late), Step::GiveUp);
        assert_eq!(
            step(|s| s.is_busy = true),
            Step::Linger,
            "a write that hangs"
        );
    }

    #[test]
    fn a_stopped_walk_waits_only_for_the_probe_of_an_address() {
        let busy = |s: &mut Situation| (s.is_stopped, s.is_busy) = (true, true);
        assert_eq!(step(busy), Step::End);
        let failed = |s: &mut Situation| (s.is_stopped, s.is_satisfied) = (true, false);
        assert_eq!(step(failed), Step::GiveUp);
        // Another port may fail yet.
        let probing = |s: &mut Situation| {
            (s.is_stopped, s.is_probing, s.needs_every_port) = (true, true, true);
        };
        assert_eq!(step(probing), Step::GiveUp);
        let claiming = |s: &mut Situation| {
            busy(s);
            s.is_claiming = true;
        };
        assert_eq!(step(claiming), Step::Linger);
        let overdue = |s: &mut Situation| {
            claiming(s);
            s.is_late = true;
        };
        assert_eq!(step(overdue), Step::EndIncomplete);
        // What was found may be older than the effect of the write.
        let writing = |s: &mut Situation| (s.is_stopped, s.is_writing) = (true, true);
        assert_eq!(step(writing), Step::GiveUp);
    }
}
