//! The histograms of one shard: what a transaction took, and the parts of it that are told apart.

use std::sync::Arc;

use crate::tally::Counter;
use linerate_measure::histogram::{CLASSES, Histogram, class_of};
use linerate_measure::{Direction, Kind, Role, Workload};

/// How many whole transactions took how long so far: written by their shard, read by the conductor at the end of each
/// interval.
#[derive(Debug)]
pub(crate) struct LatencyTally(Box<[Counter]>);

impl Default for LatencyTally {
    fn default() -> Self {
        Self((0..CLASSES).map(|_| Counter::default()).collect())
    }
}

impl LatencyTally {
    #[inline]
    fn record_ns(&self, latency_ns: u64) {
        if let Some(counter) = self.0.get(class_of(latency_ns)) {
            counter.add(1);
        }
    }

    /// Adds its counts to sums by class.
    pub(crate) fn add_to(&self, sums: &mut Vec<u64>) {
        sums.resize(CLASSES, 0);
        for (sum, counter) in sums.iter_mut().zip(&self.0) {
            *sum = sum.saturating_add(counter.value());
        }
    }
}

/// The histograms of one shard, or of several added up. A part that the load doesn't have is absent.
#[derive(Clone, Default)]
pub(crate) struct Latencies {
    /// The whole transaction; by a schedule, from the moment when it was due.
    pub(crate) total: Histogram,
    /// The same for the conductor, as far as it goes on.
    tally: Option<Arc<LatencyTally>>,
    /// By a schedule: from the moment when it really began.
    pub(crate) service: Option<Histogram>,
    /// connect: until the connection stood.
    pub(crate) establishment: Option<Histogram>,
    /// connect: until the first byte of the response.
    pub(crate) first_byte: Option<Histogram>,
    /// Media, receiver: how much longer each datagram was on its way than the fastest.
    pub(crate) delay_variation: Option<Histogram>,
    /// Media, sender: from when each frame was due until it was sent.
    pub(crate) send_delay: Option<Histogram>,
}

impl Latencies {
    /// Empty histograms, with their memory where the end times transactions.
    pub(crate) fn new(workload: &Workload, role: Role) -> Self {
        if workload.frames().is_some() {
            let goes = |way| [Some(way), Some(Direction::Both)].contains(&workload.direction());
            let (sends, receives) = match role {
                Role::Client => (goes(Direction::Up), goes(Direction::Down)),
                Role::Server => (goes(Direction::Down), goes(Direction::Up)),
            };
            return Self {
                delay_variation: receives.then(Histogram::new),
                send_delay: sends.then(Histogram::new),
                ..Self::default()
            };
        }
        if role == Role::Server || matches!(workload.kind, Kind::Stream { .. }) {
            return Self::default();
        }
        let connects = matches!(workload.kind, Kind::Connect { .. });
        Self {
            total: Histogram::new(),
            tally: Some(Arc::default()),
            service: workload.schedule().is_some().then(Histogram::new),
            establishment: connects.then(Histogram::new),
            first_byte: connects.then(Histogram::new),
            ..Self::default()
        }
    }

    /// What the conductor reads while the shard runs, where the end times transactions.
    pub(crate) fn tally(&self) -> Option<Arc<LatencyTally>> {
        self.tally.clone()
    }

    /// One transaction as a whole.
    #[inline]
    pub(crate) fn record_total_ns(&mut self, total_ns: u64) {
        self.total.record_ns(total_ns);
        if let Some(tally) = &self.tally {
            tally.record_ns(total_ns);
        }
    }

    /// One transaction: by a schedule from the moment when it was due, and from the real start.
    #[inline]
    pub(crate) fn record_ns(&mut self, total_ns: u64, service_ns: u64) {
        self.record_total_ns(total_ns);
        if let Some(service) = &mut self.service {
            service.record_ns(service_ns);
        }
    }

    /// A datagram was so much longer on its way than the fastest.
    #[inline]
    pub(crate) fn record_delay_variation(&mut self, longer_ns: u64) {
        if let Some(delays) = &mut self.delay_variation {
            delays.record_ns(longer_ns);
        }
    }

    /// A frame was sent so long after it was due.
    #[inline]
    pub(crate) fn record_send_delay(&mut self, late_ns: u64) {
        if let Some(delays) = &mut self.send_delay {
            delays.record_ns(late_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.service, &other.service),
            (&mut self.establishment, &other.establishment),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.delay_variation, &other.delay_variation),
            (&mut self.send_delay, &other.send_delay),
        ];
        self.total.merge(&other.total);
        for (ours, theirs) in pairs {
            if let Some(theirs) = theirs {
                ours.get_or_insert_default().merge(theirs);
            }
        }
    }
}

/// A histogram as reports carry it; `None` where nothing was recorded.
pub(crate) fn render_histogram(histogram: &Histogram) -> Option<String> {
    (!histogram.is_empty()).then(|| histogram.to_base64())
}

#[cfg(test)]
mod tests {
    use linerate_measure::Transport;

    use super::*;

    #[test]
    fn a_conductor_sees_what_a_shard_has_recorded() {
        let mut latencies = Latencies::new(&Workload::rr(Transport::Tcp), Role::Client);
        let tally = latencies.tally().unwrap();
        latencies.record_ns(1_000_000, 5);
        latencies.record_total_ns(1_000_000);
        latencies.record_total_ns(u64::MAX);
        let mut sums = Vec::new();
        tally.add_to(&mut sums);
        tally.add_to(&mut sums);
        assert_eq!((sums[class_of(1_000_000)], sums[CLASSES - 1]), (4, 2));
        assert_eq!(sums.iter().sum::<u64>(), 6);
        assert_eq!(latencies.total.len(), 3);
        let server = Latencies::new(&Workload::rr(Transport::Tcp), Role::Server);
        assert!(server.tally().is_none());
    }
}
