//! The rules of requests and responses.

use super::super::{Cause, Place};
use super::{DEMAND, Facts, MOSTLY};

/// The share of the time that lost or very long transactions must have taken.
const STALLED: f64 = 0.3;
/// Stalls of threads that used less than this of a processor are no matter of processors.
const STALL_DEMAND: f64 = 0.45;
/// Half of the transactions took no longer than this against the least: the path's delay, and surely.
const EVEN: f64 = 1.2;
/// From here on a latency is the path's, unless a processor has no time left.
const PATH_DELAY_NS: f64 = 1e6;
/// A shorter one is the path's if the threads of both ends together used less than this of a processor: each waited for
/// the other, and both for the path.
const LITTLE_DEMAND: f64 = 0.15;
/// Half of the transactions took this against a round trip of the path without load: their bytes waited in a queue, or
/// took that long to send.
const FILLED: f64 = 2.0;
/// Fewer bytes on their way are a few packets, which fill no path.
const FILLING_BYTES: u64 = 4096;
/// The tenth of the transactions that took longest took longer than half of them by this share of what the latter waited:
/// a full path makes all of them wait alike, and jitter doesn't.
const ALIKE: f64 = 0.35;

/// What became of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Transactions {
    /// The share of all flows' time in which a lost one was waited for.
    pub(in super::super) lost_share: f64,
    /// The share that went to those that took 10 times the median and 1 ms.
    pub(in super::super) stalled_share: f64,
    /// How many segments were sent again for each of them.
    pub(in super::super) sent_again_per_stall: Option<f64>,
    pub(in super::super) median_ns: f64,
    pub(in super::super) p90_ns: Option<f64>,
    pub(in super::super) least_ns: f64,
    /// The least round trip that anything told of the path.
    pub(in super::super) path_ns: Option<f64>,
    /// The bytes of all requests, or of all responses, that may be on their way at a time.
    pub(in super::super) bytes: u64,
    /// Whether threads spin instead of sleeping: what they use then says nothing.
    pub(in super::super) spins: bool,
    /// Which end's conductor stood still.
    pub(in super::super) client_was_late: bool,
    pub(in super::super) server_was_late: bool,
}

impl Transactions {
    /// The round trip of the path without the load.
    fn base_ns(&self) -> f64 {
        self.path_ns.map_or(self.least_ns, |path_ns| path_ns.min(self.least_ns)).max(1.0)
    }

    /// Whether the bytes that were on their way filled the path, by `times` the threshold.
    fn fill_path(&self, facts: &Facts, times: f64) -> bool {
        let waited_ns = self.median_ns - self.base_ns();
        let are_alike = self.p90_ns.is_some_and(|p90| p90 - self.median_ns <= ALIKE * waited_ns)
            || self.least_ns >= FILLED * self.base_ns();
        self.bytes >= FILLING_BYTES
            && waited_ns >= times * PATH_DELAY_NS
            && self.median_ns >= (1.0 + times * (FILLED - 1.0)) * self.base_ns()
            && (are_alike || facts.misses_rate)
    }
}

/// Requests and responses.
pub(in super::super) fn transactions(facts: &Facts, seen: Transactions) -> (Place, Cause) {
    let [sender, receiver] = [facts.evidence.demand_sender, facts.evidence.demand_receiver];
    let is_known = !seen.spins && (sender.is_some() || receiver.is_some());
    let demands = [sender, receiver].map(|demand| demand.filter(|_| is_known).unwrap_or(0.0));
    let demand = demands[0].max(demands[1]);
    let stalls = match (seen.client_was_late, seen.server_was_late) {
        (true, _) => Place::Sender,
        (false, true) => Place::Receiver,
        (false, false) => Place::Path,
    };
    let is_even = seen.median_ns < EVEN * seen.least_ns;
    let is_long = seen.median_ns > PATH_DELAY_NS;
    let is_idle = is_known && demands[0] + demands[1] < LITTLE_DEMAND;
    match () {
        () if facts.keeps_rate => (Place::Sender, Cause::OwnPacing),
        () if facts.misses_rate && demand < DEMAND && seen.fill_path(facts, 1.0) => {
            (Place::Path, Cause::PathRate)
        }
        () if seen.lost_share > STALLED => (Place::Path, Cause::Loss),
        () if seen.stalled_share > STALLED && demand < STALL_DEMAND => match stalls {
            Place::Path if seen.sent_again_per_stall >= Some(MOSTLY) => (Place::Path, Cause::Loss),
            _ => (stalls, Cause::Stalls),
        },
        () if seen.stalled_share > STALLED => (Place::Sender, Cause::BothCpus),
        () if demand < DEMAND && seen.fill_path(facts, 1.0) => (Place::Path, Cause::PathRate),
        () if is_long && is_even => (Place::Path, Cause::PathDelay),
        () if demand >= DEMAND => (Place::Sender, Cause::BothCpus),
        () if is_long || is_idle => (Place::Path, Cause::PathDelay),
        () => (Place::Sender, Cause::BothCpus),
    }
}

/// Whether the evidence is twice past the threshold of its rule.
pub(in super::super) fn is_clear_of_transactions(
    facts: &Facts,
    seen: Transactions,
    cause: Cause,
) -> bool {
    let demand = |demand: Option<f64>| demand.unwrap_or(0.0) < DEMAND / 2.0;
    let evidence = &facts.evidence;
    let is_idle = demand(evidence.demand_sender) && demand(evidence.demand_receiver);
    match cause {
        Cause::OwnPacing => facts.keeps_rate,
        Cause::Loss => seen.lost_share > 2.0 * STALLED && seen.bytes < FILLING_BYTES,
        Cause::PathRate => is_idle && seen.fill_path(facts, 2.0),
        // A path that takes as long without the load.
        Cause::PathDelay => {
            is_idle
                && seen.median_ns >= 2.0 * PATH_DELAY_NS
                && seen.median_ns < EVEN * seen.base_ns()
        }
        _ => false,
    }
}
