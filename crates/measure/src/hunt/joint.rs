//! A trial that several pairs make together: judged by the sums of what they count.

use std::collections::BTreeMap;

use super::{Bad, Breach, Goal, Judge, Method, Observation, Seen, Shortfall, Trial, TrialVerdict};

/// Cells that wait for the counts of other pairs; the oldest one gives way.
const MOST_CELLS: u64 = 4096;

/// Watches one trial that several pairs make at the same time, each at the trial's rate. The verdict is that of the
/// sums over all pairs, if each pair's sender has offered the rate.
#[derive(Clone, Debug)]
pub struct JointJudge {
    sum: Judge,
    each: Vec<Judge>,
    sent: Sums,
    arrived: Sums,
    /// The exact counts of each pair that has run to its end.
    totals: Vec<Option<Counts>>,
    is_original: bool,
    decided: Option<TrialVerdict>,
}

impl JointJudge {
    /// The judge of a trial that so many pairs make. Their intervals are so long.
    pub fn new(goal: &Goal, trial: &Trial, pairs: usize, interval_ns: u64) -> Self {
        let count = u64::try_from(pairs).unwrap_or(u64::MAX);
        let of_all = Trial { rate: trial.rate.saturating_mul(count), ..*trial };
        Self {
            sum: Judge::new(goal, &of_all),
            each: vec![Judge::new(goal, trial); pairs],
            sent: Sums::new(pairs, interval_ns),
            arrived: Sums::new(pairs, interval_ns),
            totals: vec![None; pairs],
            is_original: goal.method == Method::Bisection,
            decided: None,
        }
    }

    /// Takes what an interval of a pair has brought. After the verdict nothing counts.
    pub fn handle(&mut self, pair: usize, observation: &Observation) {
        let Some(judge) = self.each.get_mut(pair).filter(|_| self.decided.is_none()) else {
            return;
        };
        judge.count(observation);
        if judge.is_stalled() && !self.is_original {
            self.decided = Some(TrialVerdict::Invalid { why: Shortfall::Uneven });
            return;
        }
        let is_full = self.each.iter().any(Judge::is_full);
        self.sum.set_full(is_full);
        let sums: Vec<Observation> = match *observation {
            Observation::Backpressure { refused: 0, .. } => Vec::new(),
            // The time of what was dropped is told by what was sent.
            Observation::Backpressure { to_ns, refused, .. } => {
                vec![Observation::Backpressure {
                    from_ns: to_ns.saturating_sub(1),
                    to_ns,
                    refused,
                    is_full: false,
                    window_wait_ns: None,
                }]
            }
            Observation::Sent { from_ns, to_ns, items } => {
                let counts = Counts { items, bad: Vec::new() };
                let cells = self.sent.add(pair, (from_ns, to_ns), &counts).into_iter();
                let sent = |(from_ns, to_ns, Counts { items, .. })| Observation::Sent {
                    from_ns,
                    to_ns,
                    items,
                };
                cells.map(sent).collect()
            }
            Observation::Arrived { from_ns, to_ns, items, ref bad } => {
                let counts = Counts { items, bad: bad.clone() };
                let cells = self.arrived.add(pair, (from_ns, to_ns), &counts).into_iter();
                let arrived = |(from_ns, to_ns, Counts { items, bad })| Observation::Arrived {
                    from_ns,
                    to_ns,
                    items,
                    bad,
                };
                cells.map(arrived).collect()
            }
            Observation::Totals { items, ref bad } => {
                self.add_totals(pair, Counts { items, bad: bad.clone() }).into_iter().collect()
            }
        };
        for sum in &sums {
            self.sum.handle(sum);
        }
        self.decided = self.sum.verdict().map(|verdict| self.checked(verdict));
    }

    /// The pairs did not run at the same time: the trial says nothing.
    pub fn handle_apart(&mut self) {
        if !self.is_original {
            self.decided = Some(TrialVerdict::Invalid { why: Shortfall::Apart });
        }
    }

    /// The verdict, as soon as it is certain: the trial may end.
    pub fn verdict(&self) -> Option<TrialVerdict> {
        self.decided
    }

    /// The verdict at the trial's end, where it may be the more likely one.
    pub fn finish(&self) -> TrialVerdict {
        self.decided.unwrap_or_else(|| self.checked(self.sum.finish()))
    }

    /// What all pairs have seen together.
    pub fn seen(&self) -> Seen {
        self.sum.seen()
    }

    /// What one pair has seen.
    pub fn seen_of(&self, pair: usize) -> Seen {
        self.each.get(pair).map(Judge::seen).unwrap_or_default()
    }

    /// The pair that is most to blame for a verdict, or was nearest to a limit: its place.
    pub fn worst(&self, verdict: TrialVerdict) -> usize {
        let badness = |pair: usize| -> f64 {
            let seen = self.seen_of(pair);
            let share = |place: usize| {
                let bad = seen.bad.get(place).map_or(0, |bad| bad.items) as f64;
                bad / (seen.arrived_items as f64 + bad).max(1.0)
            };
            match verdict {
                TrialVerdict::Fail { why: Breach::Queue } => seen.growth_ratio.unwrap_or(0.0),
                TrialVerdict::Fail { why: Breach::Latency } => {
                    (1..seen.bad.len()).map(share).fold(0.0, f64::max)
                }
                TrialVerdict::Invalid { .. } | TrialVerdict::Fail { why: Breach::Backpressure } => {
                    -seen.sent_per_s
                }
                TrialVerdict::Fail { why: Breach::Nothing } => -(seen.arrived_items as f64),
                TrialVerdict::Open | TrialVerdict::Pass => {
                    (0..seen.bad.len()).map(share).fold(0.0, f64::max)
                }
                TrialVerdict::Fail { why: Breach::Loss } => share(0),
            }
        };
        let pairs = (0..self.each.len()).map(|pair| (pair, badness(pair)));
        pairs.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map_or(0, |(pair, _)| pair)
    }

    /// A verdict on the path counts only if each pair's sender has offered the rate.
    fn checked(&self, verdict: TrialVerdict) -> TrialVerdict {
        let lacks = |judge: &Judge| judge.is_short() && !judge.is_full();
        let is_short = !self.is_original && self.each.iter().any(lacks);
        match verdict {
            TrialVerdict::Invalid { .. } => verdict,
            _ if is_short => TrialVerdict::Invalid { why: Shortfall::Offered },
            _ => verdict,
        }
    }

    /// The exact counts of all pairs, once each has told its own.
    fn add_totals(&mut self, pair: usize, counts: Counts) -> Option<Observation> {
        *self.totals.get_mut(pair)? = Some(counts);
        let mut sum = Counts::default();
        for counts in &self.totals {
            sum.add(counts.clone()?);
        }
        Some(Observation::Totals { items: sum.items, bad: sum.bad })
    }
}

/// Items, and those of them that broke limits.
#[derive(Clone, Debug, Default)]
struct Counts {
    items: u64,
    bad: Vec<Bad>,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.items = self.items.saturating_add(other.items);
        self.bad.resize(self.bad.len().max(other.bad.len()), Bad::default());
        for (sum, bad) in self.bad.iter_mut().zip(other.bad) {
            *sum = sum.plus(bad);
        }
    }
}

/// Adds up what all pairs count in the same time. Pairs end their intervals at slightly different times, and a busy one
/// late: what an interval counts is spread over cells of equal length, and a cell is told when all pairs have covered it.
#[derive(Clone, Debug)]
struct Sums {
    cell_ns: u64,
    waiting: BTreeMap<u64, Cell>,
    /// Where each pair's last interval ended.
    ends_ns: Vec<u64>,
}

/// One cell.
#[derive(Clone, Debug)]
struct Cell {
    /// How much of it each pair has covered.
    covered_ns: Vec<u64>,
    counts: Counts,
}

impl Sums {
    fn new(pairs: usize, cell_ns: u64) -> Self {
        Self { cell_ns: cell_ns.max(1), waiting: BTreeMap::new(), ends_ns: vec![0; pairs] }
    }

    /// Adds what a pair has counted in an interval, and returns the cells that all pairs have covered now: beginning,
    /// end and sums. A cell of which a pair has left out a part is never told.
    fn add(
        &mut self,
        pair: usize,
        (from_ns, to_ns): (u64, u64),
        counts: &Counts,
    ) -> Vec<(u64, u64, Counts)> {
        let Some(end_ns) = self.ends_ns.get_mut(pair).filter(|end_ns| **end_ns <= from_ns) else {
            return Vec::new();
        };
        let (first, last) = (from_ns / self.cell_ns, to_ns.saturating_sub(1) / self.cell_ns);
        if to_ns <= from_ns || last - first >= MOST_CELLS {
            return Vec::new();
        }
        *end_ns = to_ns;
        let pairs = self.ends_ns.len();
        let length_ns = to_ns - from_ns;
        let overlap_of = |number: u64| {
            let begin_ns = from_ns.max(number.saturating_mul(self.cell_ns));
            to_ns.min((number + 1).saturating_mul(self.cell_ns)).saturating_sub(begin_ns)
        };
        // What broke limits stays together, where most of the interval is.
        let middle = (first..=last).rev().max_by_key(|number| overlap_of(*number));
        let (mut passed_ns, mut told) = (0, 0);
        for number in first..=last {
            let overlap_ns = overlap_of(number);
            passed_ns += overlap_ns;
            let so_far = u128::from(counts.items) * u128::from(passed_ns) / u128::from(length_ns);
            let so_far = u64::try_from(so_far).unwrap_or(u64::MAX);
            let bad = if Some(number) == middle { counts.bad.clone() } else { Vec::new() };
            let cell = self
                .waiting
                .entry(number)
                .or_insert_with(|| Cell { covered_ns: vec![0; pairs], counts: Counts::default() });
            cell.counts.add(Counts { items: so_far - told, bad });
            if let Some(covered_ns) = cell.covered_ns.get_mut(pair) {
                *covered_ns += overlap_ns;
            }
            told = so_far;
        }
        self.take_covered()
    }

    /// The cells that all pairs have covered; those that a pair has passed and not covered go.
    fn take_covered(&mut self) -> Vec<(u64, u64, Counts)> {
        let passed_ns = self.ends_ns.iter().copied().min().unwrap_or(0);
        let mut covered = Vec::new();
        while let Some(first) = self.waiting.first_entry() {
            let number = *first.key();
            let end_ns = (number + 1).saturating_mul(self.cell_ns);
            if end_ns > passed_ns {
                break;
            }
            let cell = first.remove();
            if cell.covered_ns.iter().all(|covered_ns| *covered_ns == self.cell_ns) {
                covered.push((number.saturating_mul(self.cell_ns), end_ns, cell.counts));
            }
        }
        while self.waiting.len() as u64 > MOST_CELLS {
            self.waiting.pop_first();
        }
        covered
    }
}

#[cfg(test)]
mod tests;
