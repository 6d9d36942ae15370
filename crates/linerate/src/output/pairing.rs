//! Samples of both ends, brought together: an interval's goodput is the receiver's, its
//! retransmissions and round-trip time are the sender's.

use std::collections::BTreeMap;

use linerate_measure::{Role, Sample};

/// Both ends' samples of one interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    /// The client's.
    pub(crate) client: Option<Sample>,
    /// The server's.
    pub(crate) server: Option<Sample>,
}

impl Interval {
    /// The sample of one end.
    pub(crate) fn of(&self, role: Role) -> Option<&Sample> {
        match role {
            Role::Client => self.client.as_ref(),
            Role::Server => self.server.as_ref(),
        }
    }
}

/// Holds an interval back until both ends have told theirs, or until a later one is complete.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    open: BTreeMap<u32, Interval>,
}

/// Intervals that one end may be behind the other before they are shown incomplete.
const BEHIND_MAX: usize = 2;

impl Pairing {
    /// Takes a sample; gives back the intervals that are ready, in order.
    pub(crate) fn record_sample(&mut self, sample: &Sample) -> Vec<Interval> {
        let interval = self.open.entry(sample.index).or_default();
        match sample.role {
            Role::Client => interval.client = Some(sample.clone()),
            Role::Server => interval.server = Some(sample.clone()),
        }
        let complete = |interval: &Interval| interval.client.is_some() && interval.server.is_some();
        let last_complete = self
            .open
            .iter()
            .filter(|(_, interval)| complete(interval))
            .map(|(index, _)| *index)
            .max();
        let mut ready = Vec::new();
        while let Some(entry) = self.open.first_entry() {
            let due = last_complete.is_some_and(|last| *entry.key() <= last);
            if !due && self.open.len() <= BEHIND_MAX {
                break;
            }
            ready.extend(self.open.pop_first().map(|(_, interval)| interval));
        }
        ready
    }

    /// What is left at the end.
    pub(crate) fn drain(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(role: Role, index: u32) -> Sample {
        Sample { index, to_ns: 1, ..Sample::nothing(role) }
    }

    #[test]
    fn an_interval_waits_for_both_ends() {
        let mut pairing = Pairing::default();
        assert!(pairing.record_sample(&sample(Role::Client, 0)).is_empty());
        let ready = pairing.record_sample(&sample(Role::Server, 0));
        assert_eq!(ready.len(), 1);
        assert!(ready.iter().all(|interval| interval.of(Role::Client).is_some()));
        assert!(pairing.drain().is_empty());
    }

    #[test]
    fn a_silent_end_is_not_waited_for_for_ever() {
        let mut pairing = Pairing::default();
        let shown: usize =
            (0..5).map(|index| pairing.record_sample(&sample(Role::Client, index)).len()).sum();
        assert_eq!(shown, 3);
        assert_eq!(pairing.drain().len(), 2);
    }

    #[test]
    fn a_complete_interval_takes_the_ones_before_along() {
        let mut pairing = Pairing::default();
        pairing.record_sample(&sample(Role::Client, 0));
        pairing.record_sample(&sample(Role::Client, 1));
        let ready = pairing.record_sample(&sample(Role::Server, 1));
        assert_eq!(ready.len(), 2);
    }
}
