//! Intervals that are too short to be kept by themselves.

use linerate_measure::Sample;

/// What a sample counts with. iperf3 with --omit has intervals of microseconds, in which a socket buffer fills: a rate
/// of a hundred Gbit/s, which a store would keep for a whole millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joins {
    /// It has an interval of its own.
    Nothing,
    Next,
    Previous,
}

/// An interval that is shorter than this, and than this part of the end's longest one, counts with another.
const SHORT_NS: u64 = 10_000_000;
const SHORT_PART: u64 = 10;

/// What each sample of an end counts with: the next one that isn't short, or else the previous one, never across a
/// warm-up's end.
pub(super) fn joins_of(samples: &[&Sample]) -> Vec<Joins> {
    let length_ns = |sample: &Sample| sample.to_ns.saturating_sub(sample.from_ns);
    let longest_ns = samples.iter().map(|sample| length_ns(sample)).max().unwrap_or(0);
    let is_short = |sample: &Sample| length_ns(sample) < SHORT_NS.min(longest_ns / SHORT_PART);
    // The first and the last one that isn't short, of the warm-up and of the measured part.
    let range_of = |warm_up: bool| {
        let holds = |sample: &&Sample| sample.warm_up == warm_up && !is_short(sample);
        Some((samples.iter().position(holds)?, samples.iter().rposition(holds)?))
    };
    let ranges = (range_of(true), range_of(false));
    let joins = samples.iter().enumerate().map(|(place, sample)| {
        let range = if sample.warm_up { ranges.0 } else { ranges.1 };
        match range.filter(|_| is_short(sample)) {
            Some((_, last)) if place < last => Joins::Next,
            Some(_) => Joins::Previous,
            None => Joins::Nothing,
        }
    });
    joins.collect()
}
