//! Watches one trial and ends it as soon as its verdict is certain.

use super::ratio::{Bad, Decision, RatioTest};
use super::{
    Breach, Goal, Method, Observation, Purpose, Shortfall, Trial, TrialVerdict, keeps_loss,
};

mod backlog;

use backlog::Backlog;

/// No trial fails earlier: the rate at which items arrive must be known, too.
const LEAST_FAIL_NS: u64 = 500_000_000;
/// No trial passes earlier, and no growth of a queue is judged earlier.
const LEAST_PASS_NS: u64 = 1_000_000_000;
/// No trial that confirms a rate passes earlier.
const LEAST_CONFIRM_NS: u64 = 2_000_000_000;
/// Runs of bad items are taken to be so long at least in a trial that confirms a rate.
const CONFIRM_FLOOR: f64 = 10.0;
/// A sender offers a rate if it sends this share of what was due.
const OFFERED: f64 = 0.98;
/// A sender whose transport has no room offers a rate if it sends this share: less shows that the transport takes no
/// more. A bracket is as narrow at the end.
const OFFERED_WITHOUT_ROOM: f64 = 0.996;
/// A sender is even if each interval has between half and one and a half times what was due.
const EVEN: std::ops::RangeInclusive<f64> = 0.5..=1.5;
/// Intervals shorter than this say nothing of a sender.
const LEAST_INTERVAL_NS: u64 = 10_000_000;

/// Watches one trial.
#[derive(Clone, Debug)]
pub struct Judge {
    trial: Trial,
    is_original: bool,
    is_judged_at_end: bool,
    limits: Vec<f64>,
    items_per_s: f64,
    ratios: Vec<RatioTest>,
    backlog: Backlog,
    sent_items: u64,
    arrived_items: u64,
    uneven: bool,
    room: Room,
    decided: Option<TrialVerdict>,
}

/// Whether the sender's transport had room for what was due.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// Whether it had none in the interval that was observed last.
    is_full: bool,
    /// The time of the intervals in which it had none, and of all.
    full_ns: u64,
    observed_ns: u64,
    /// The transport's counter of waits for its windows.
    window_wait_ns: Option<u64>,
    /// Whether another judge has found that it had none.
    is_full_elsewhere: bool,
}

impl Room {
    /// Whether it had none for most of the time.
    fn is_missing(self) -> bool {
        self.is_full_elsewhere || self.full_ns.saturating_mul(2) > self.observed_ns
    }

    /// Whether it had none at any time.
    fn was_missing(self) -> bool {
        self.is_full_elsewhere || self.full_ns > 0
    }
}

/// What a trial has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Time in which both ends counted.
    pub span_ns: u64,
    /// Items sent.
    pub sent_items: u64,
    /// Items that arrived.
    pub arrived_items: u64,
    /// Items sent per second.
    pub sent_per_s: f64,
    /// Items that arrived per second while the sender sent.
    pub arrived_per_s: f64,
    /// What broke limits, in the order of [`Goal::ratios`].
    pub bad: Vec<Bad>,
    /// By how much of the rate a queue on the path grew; absent: too little was seen.
    pub growth_ratio: Option<f64>,
}

impl Judge {
    /// The judge of a trial.
    pub fn new(goal: &Goal, trial: &Trial) -> Self {
        let floor = if trial.purpose == Purpose::Confirm { CONFIRM_FLOOR } else { 1.0 };
        let limits = goal.ratios();
        Self {
            trial: *trial,
            is_judged_at_end: goal.is_judged_at_end(),
            is_original: goal.method == Method::Bisection,
            ratios: limits.iter().map(|&limit| RatioTest::new(limit, floor)).collect(),
            limits,
            items_per_s: goal.items_per_s(trial.rate),
            backlog: Backlog::default(),
            sent_items: 0,
            arrived_items: 0,
            uneven: false,
            room: Room::default(),
            decided: None,
        }
    }

    /// Takes what an interval has brought. After the verdict nothing counts.
    pub fn handle(&mut self, observation: &Observation) {
        if self.decided.is_some() {
            return;
        }
        self.count(observation);
        if matches!(observation, Observation::Totals { .. }) {
            return;
        }
        // The growth of a queue is looked at once for both ends' counts of an interval.
        let is_arrival = matches!(observation, Observation::Arrived { .. });
        if is_arrival || self.uneven {
            self.decided = self.decide();
        }
    }

    /// Takes what an interval has brought, and decides nothing.
    pub(super) fn count(&mut self, observation: &Observation) {
        match *observation {
            Observation::Backpressure { from_ns, to_ns, refused, is_full, window_wait_ns } => {
                self.count_room((from_ns, to_ns), refused, is_full, window_wait_ns);
            }
            Observation::Sent { from_ns, to_ns, items } if to_ns > from_ns => {
                self.sent_items = self.sent_items.saturating_add(items);
                self.backlog.record_sent(from_ns, to_ns, items);
                self.uneven |= self.is_uneven(from_ns, to_ns, items);
            }
            Observation::Arrived { from_ns, to_ns, items, ref bad } if to_ns > from_ns => {
                self.arrived_items = self.arrived_items.saturating_add(items);
                let lost = bad.first().map_or(0, |lost| lost.items);
                let total = items.saturating_add(lost);
                self.backlog.record_arrived(from_ns, to_ns, items, total);
                for (place, ratio) in self.ratios.iter_mut().enumerate() {
                    // Latency is judged by the requests that were answered.
                    let of = if place == 0 { total } else { items };
                    ratio.record(of, bad.get(place).copied().unwrap_or_default());
                }
            }
            Observation::Totals { items, ref bad } => {
                self.arrived_items = items;
                let lost = bad.first().map_or(0, |lost| lost.items);
                for (place, ratio) in self.ratios.iter_mut().enumerate() {
                    let of = if place == 0 { items.saturating_add(lost) } else { items };
                    ratio.replace(of, bad.get(place).copied().unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    fn count_room(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        refused: u64,
        is_full: bool,
        window_wait_ns: Option<u64>,
    ) {
        let before_ns = std::mem::replace(&mut self.room.window_wait_ns, window_wait_ns);
        let waited = window_wait_ns.zip(before_ns).map(|(now, before)| now.saturating_sub(before));
        let length_ns = to_ns.saturating_sub(from_ns);
        if length_ns == 0 {
            return;
        }
        let due = self.items_per_s * seconds(length_ns);
        let waits = waited.is_some_and(|waited_ns| waited_ns.saturating_mul(2) > length_ns);
        let drops = refused as f64 > due * (1.0 - OFFERED);
        self.room.is_full = is_full || waits || drops;
        self.room.observed_ns = self.room.observed_ns.saturating_add(length_ns);
        if self.room.is_full {
            self.room.full_ns = self.room.full_ns.saturating_add(length_ns);
        }
        // What the sender's own queue drops doesn't arrive either.
        if let Some(losses) = self.ratios.first_mut().filter(|_| refused > 0) {
            losses.record(refused, Bad::one_event(refused));
        }
    }

    /// The senders of a trial that several pairs make had no room for what was due.
    pub(super) fn set_full(&mut self, is_full: bool) {
        self.room.is_full_elsewhere = is_full;
    }

    /// Whether the sender's transport had no room for most of the time.
    pub(super) fn is_full(&self) -> bool {
        self.room.is_missing()
    }

    /// The verdict, as soon as it is certain: the trial may end.
    pub fn verdict(&self) -> Option<TrialVerdict> {
        self.decided
    }

    /// The verdict at the trial's end, where it may be the more likely one.
    pub fn finish(&self) -> TrialVerdict {
        if let Some(verdict) = self.decided {
            return verdict;
        }
        let lost = self.ratios.first().map_or(Bad::default(), |ratio| ratio.counts().1);
        if self.is_original {
            let total = self.arrived_items.saturating_add(lost.items);
            let limit = self.limits.first().copied().unwrap_or(0.0);
            return match keeps_loss(lost.items, total, limit * 100.0) {
                true => TrialVerdict::Pass,
                false if total == 0 => TrialVerdict::Fail { why: Breach::Nothing },
                false => TrialVerdict::Fail { why: Breach::Loss },
            };
        }
        let span_ns = self.backlog.span_ns();
        if span_ns < self.trial.longest_ns.saturating_sub(self.trial.longest_ns / 5) {
            let nothing = self.sent_items > 0 && self.arrived_items == 0;
            return match nothing && self.backlog.sent_ns() >= LEAST_PASS_NS {
                true => TrialVerdict::Fail { why: Breach::Nothing },
                false => TrialVerdict::Invalid { why: Shortfall::Short },
            };
        }
        if self.is_short() {
            return self.shortage();
        }
        let above = self.ratios.iter().position(|ratio| ratio.guess() == Decision::Above);
        match above {
            Some(place) => TrialVerdict::Fail { why: breach(place) },
            None if self.growth().is_some_and(|growth| growth.is_likely()) => {
                TrialVerdict::Fail { why: Breach::Queue }
            }
            None => TrialVerdict::Pass,
        }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        Seen {
            span_ns: self.backlog.span_ns(),
            sent_items: self.sent_items,
            arrived_items: self.arrived_items,
            sent_per_s: self.backlog.sent_per_s(),
            arrived_per_s: self.backlog.arrived_per_s(),
            bad: self.ratios.iter().map(|ratio| ratio.counts().1).collect(),
            growth_ratio: self.growth().map(|growth| growth.ratio()),
        }
    }

    fn growth(&self) -> Option<backlog::Growth> {
        // Samples don't tell which requests have failed: as many as may fail are no queue.
        let failing = match self.is_judged_at_end {
            true => self.limits.first().copied().unwrap_or(0.0),
            false => 0.0,
        };
        self.backlog.growth(self.items_per_s).map(|growth| growth.less(failing))
    }

    fn decide(&self) -> Option<TrialVerdict> {
        if self.is_original {
            return None;
        }
        if self.uneven {
            return Some(TrialVerdict::Invalid { why: Shortfall::Uneven });
        }
        let span_ns = self.backlog.span_ns();
        if span_ns < LEAST_FAIL_NS {
            return None;
        }
        let decisions: Vec<Decision> = self.ratios.iter().map(RatioTest::decide).collect();
        let above = decisions.iter().position(|decision| *decision == Decision::Above);
        let is_long = span_ns >= LEAST_PASS_NS;
        let growth = if is_long { self.growth() } else { None };
        if (is_long || above.is_some()) && self.is_short() {
            return Some(self.shortage());
        }
        if let Some(place) = above {
            return Some(TrialVerdict::Fail { why: breach(place) });
        }
        if growth.is_some_and(|growth| growth.is_certain()) {
            return Some(TrialVerdict::Fail { why: Breach::Queue });
        }
        let least_ns = match self.trial.purpose {
            _ if self.is_judged_at_end => return None,
            Purpose::Search => LEAST_PASS_NS,
            Purpose::Confirm => LEAST_CONFIRM_NS,
            Purpose::Fixed => return None,
        };
        let keeps = span_ns >= least_ns
            && decisions.iter().all(|decision| *decision == Decision::Below)
            && growth.is_some_and(|growth| growth.is_excluded());
        keeps.then_some(TrialVerdict::Pass)
    }

    /// Whether the sender has sent less than 98 % of what was due, or than 99.6 % where its transport had no room. One
    /// item is no shortage.
    pub(super) fn is_short(&self) -> bool {
        let due = self.items_per_s * seconds(self.backlog.sent_ns());
        let offered = if self.is_full() { OFFERED_WITHOUT_ROOM } else { OFFERED };
        self.sent_items as f64 + 1.0 <= due * offered
    }

    /// What a sender's shortage says: the transport takes no more, or the sender is too slow.
    fn shortage(&self) -> TrialVerdict {
        match self.is_full() {
            true => TrialVerdict::Fail { why: Breach::Backpressure },
            false => TrialVerdict::Invalid { why: Shortfall::Offered },
        }
    }

    /// Whether an interval of the sender had far too few or too many items.
    pub(super) fn is_stalled(&self) -> bool {
        self.uneven
    }

    /// Whether an interval of the sender has far too few or too many items. The one in which the trial ends may be
    /// cut short, and one item is no matter. A transport without room takes few, and many when it has room again.
    fn is_uneven(&self, from_ns: u64, to_ns: u64, items: u64) -> bool {
        let is_last = self.backlog.elapsed_ns() >= self.trial.longest_ns;
        let due = self.items_per_s * seconds(to_ns - from_ns);
        let (least, most) = (due * EVEN.start() - 1.0, due * EVEN.end() + 1.0);
        to_ns - from_ns >= LEAST_INTERVAL_NS
            && ((items as f64 > most && !self.room.was_missing())
                || (!is_last && (items as f64) < least && !self.room.is_full))
    }
}

fn breach(place: usize) -> Breach {
    if place == 0 { Breach::Loss } else { Breach::Latency }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests;
