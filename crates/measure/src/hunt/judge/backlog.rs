//! What is on its way: sent and neither arrived nor lost. Where that grows, a queue on the path grows, and the rate is
//! above what the path carries, although nothing is lost yet.

/// A queue that grows by more than this share of the rate shows that the path carries less.
const GROWING: f64 = 0.004;
/// Fewer points tell no growth.
const LEAST_POINTS: usize = 12;
/// Points that are looked at: those of ten minutes.
const MOST_POINTS: usize = 12_000;
/// From the median absolute deviation to the standard deviation, of a normal distribution.
const DEVIATION: f64 = 1.4826;
/// The standard error of a median of *n* values: so many standard deviations by the root of *n*.
const MEDIAN_ERROR: f64 = 1.2533;
/// Counts are whole: no backlog is known better, in items.
const LEAST_DEVIATION: f64 = 0.3;

/// One end's count at one time, since the trial's beginning.
#[derive(Clone, Copy, Debug)]
struct Point {
    at_ns: u64,
    items: u64,
}

/// Counts of both ends, each without a gap: where an interval is missing, what was in it is not known, and counting
/// begins again behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog {
    sent: Vec<Point>,
    /// The time of all intervals of the sender, those before a gap too.
    sent_ns: u64,
    /// The sender's first interval began then.
    began_ns: Option<u64>,
    /// Arrived or lost.
    settled: Vec<Point>,
    arrived: Vec<Point>,
}

/// How a backlog grew, as shares of the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    ratio: f64,
    error: f64,
}

impl Growth {
    pub(super) fn ratio(self) -> f64 {
        self.ratio
    }

    /// The same, less a share that is no growth.
    pub(super) fn less(self, ratio: f64) -> Self {
        Self { ratio: self.ratio - ratio, ..self }
    }

    /// It grew, beyond doubt.
    pub(super) fn is_certain(self) -> bool {
        self.ratio - 3.0 * self.error > GROWING
    }

    /// It grew more likely than not.
    pub(super) fn is_likely(self) -> bool {
        self.ratio > GROWING
    }

    /// It didn't grow.
    pub(super) fn is_excluded(self) -> bool {
        self.ratio + self.error < GROWING
    }
}

impl Backlog {
    pub(super) fn record_sent(&mut self, from_ns: u64, to_ns: u64, items: u64) {
        self.began_ns.get_or_insert(from_ns);
        self.sent_ns = self.sent_ns.saturating_add(to_ns.saturating_sub(from_ns));
        push(&mut self.sent, from_ns, to_ns, items);
    }

    pub(super) fn record_arrived(&mut self, from_ns: u64, to_ns: u64, items: u64, settled: u64) {
        push(&mut self.arrived, from_ns, to_ns, items);
        push(&mut self.settled, from_ns, to_ns, settled);
    }

    /// The time for which both ends' counts are known.
    pub(super) fn span_ns(&self) -> u64 {
        let (Some(sent), Some(settled)) = (range(&self.sent), range(&self.settled)) else {
            return 0;
        };
        sent.1.min(settled.1).saturating_sub(sent.0.max(settled.0))
    }

    /// The time in which the sender has counted.
    pub(super) fn sent_ns(&self) -> u64 {
        self.sent_ns
    }

    /// The time from the sender's first interval to the end of its last one.
    pub(super) fn elapsed_ns(&self) -> u64 {
        let end_ns = self.sent.last().map_or(0, |point| point.at_ns);
        end_ns.saturating_sub(self.began_ns.unwrap_or(0))
    }

    pub(super) fn sent_per_s(&self) -> f64 {
        per_s(&self.sent, u64::MAX)
    }

    /// Items per second that arrived while the sender sent: what a queue holds at the end is no part of it.
    pub(super) fn arrived_per_s(&self) -> f64 {
        per_s(&self.arrived, self.sent.last().map_or(0, |point| point.at_ns))
    }

    /// How the backlog grew: the median of its second half less that of its first. Both ends' counts are compared at
    /// the same times: the sender's, between which the receiver's are interpolated.
    pub(super) fn growth(&self, items_per_s: f64) -> Option<Growth> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut later = self.settled.windows(2).peekable();
        for sent in self.sent.iter().take(MOST_POINTS) {
            while later.peek().is_some_and(|pair| pair[1].at_ns < sent.at_ns) {
                later.next();
            }
            let Some([before, after]) = later.peek() else { break };
            if before.at_ns > sent.at_ns {
                continue;
            }
            let length = (after.at_ns - before.at_ns).max(1) as f64;
            let part = (sent.at_ns - before.at_ns) as f64 / length;
            let settled = before.items as f64 + part * (after.items - before.items) as f64;
            points.push((sent.at_ns as f64 / 1e9, sent.items as f64 - settled));
        }
        growth_of(&points, items_per_s)
    }
}

fn growth_of(points: &[(f64, f64)], items_per_s: f64) -> Option<Growth> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let (first, second) = points.split_at(points.len() / 2);
    let values = |half: &[(f64, f64)]| median(half.iter().map(|point| point.1).collect());
    let times = |half: &[(f64, f64)]| median(half.iter().map(|point| point.0).collect());
    let seconds = times(second) - times(first);
    if seconds <= 0.0 || items_per_s <= 0.0 {
        return None;
    }
    let per_s = (values(second) - values(first)) / seconds;
    let level: Vec<f64> = points.iter().map(|(at_s, items)| items - per_s * at_s).collect();
    let middle = median(level.clone());
    let spread = DEVIATION * median(level.iter().map(|items| (items - middle).abs()).collect());
    let error = MEDIAN_ERROR * spread.max(LEAST_DEVIATION) * 2.0 / (points.len() as f64).sqrt();
    Some(Growth { ratio: per_s / items_per_s, error: error / seconds / items_per_s })
}

fn push(points: &mut Vec<Point>, from_ns: u64, to_ns: u64, items: u64) {
    let allowed_ns = to_ns.saturating_sub(from_ns) / 2;
    let has_gap = |last: &Point| from_ns > last.at_ns.saturating_add(allowed_ns);
    if points.last().is_some_and(has_gap) {
        points.clear();
    }
    if points.is_empty() {
        points.push(Point { at_ns: from_ns, items: 0 });
    }
    let last = points.last().map_or(0, |point| point.items);
    // An interval that doesn't follow the one before tells nothing of when.
    if points.last().is_none_or(|point| point.at_ns < to_ns) {
        points.push(Point { at_ns: to_ns, items: last.saturating_add(items) });
    }
}

fn range(points: &[Point]) -> Option<(u64, u64)> {
    Some((points.first()?.at_ns, points.last()?.at_ns))
}

fn per_s(points: &[Point], until_ns: u64) -> f64 {
    let last = points.iter().rfind(|point| point.at_ns <= until_ns).or(points.last());
    let (Some(first), Some(last)) = (points.first(), last) else { return 0.0 };
    let ns = last.at_ns.saturating_sub(first.at_ns);
    if ns == 0 { 0.0 } else { last.items as f64 * 1e9 / ns as f64 }
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(*upper);
    if is_odd { *upper } else { (lower + *upper) / 2.0 }
}
