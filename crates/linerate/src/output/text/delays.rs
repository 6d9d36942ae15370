//! The delays of the two directions of a path, as people read them.

use linerate_measure::one_way::OneWay;
use linerate_measure::summary::Latency;
use linerate_measure::units::render_duration_ns;
use linerate_measure::{Direction, Kind, Run};

/// A bound that is a smaller part of the figure is not shown.
const SHOWN_PART: u64 = 20;

/// Names and values of the delays, of a run whose load waits for the path: requests, or datagrams.
pub(super) fn delay_lines(run: &Run) -> Vec<(String, String)> {
    let delays = &run.summary.one_way;
    let workload = &run.plan.workload;
    let asks = matches!(workload.kind, Kind::Rr { .. });
    if delays.is_empty() || !(asks || run.summary.datagrams.is_some()) {
        return Vec::new();
    }
    let ways: Vec<String> = delays.iter().map(render_least).collect();
    let unknown = if is_split_unknown(delays) { " (split unknown)" } else { "" };
    let least = ("one way".to_owned(), format!("{}{unknown}", ways.join(", ")));
    let queues = delays.iter().filter_map(|one| {
        let queueing = render_queueing(&one.queueing_ns?, one.queueing_bound_ns);
        Some((format!("  queueing {}", word(one.direction)), queueing))
    });
    std::iter::once(least).chain(queues).collect()
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up | Direction::Both => "up",
    }
}

fn render_least(one: &OneWay) -> String {
    let [least, bound] = [one.least_ns, one.bound_ns].map(render_duration_ns);
    format!("{} {least} +- {bound}", word(one.direction))
}

/// Whether the bounds leave open which direction takes the whole round trip, or nearly so.
fn is_split_unknown(delays: &[OneWay]) -> bool {
    let sum = |ns: fn(&OneWay) -> u64| delays.iter().map(ns).fold(0, u64::saturating_add);
    sum(|one| one.bound_ns) >= sum(|one| one.least_ns) / 10 * 9
}

fn render_queueing(queueing: &Latency, bound_ns: u64) -> String {
    let quantiles = [("p50", queueing.p50), ("p90", queueing.p90), ("p99", queueing.p99)];
    let known = quantiles.iter().filter_map(|(name, ns)| ns.map(|ns| (*name, ns)));
    // The median, and the highest quantile that is known; of few, the greatest value.
    let mut shown: Vec<(&str, u64)> = known.collect();
    if shown.len() > 2 {
        shown.remove(1);
    }
    if shown.is_empty() {
        shown.push(("greatest", queueing.max));
    }
    let longest_ns = shown.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
    let shown = shown.iter().map(|(name, ns)| format!("{name} {}", render_duration_ns(*ns)));
    let shown: Vec<String> = shown.collect();
    let bound = match bound_ns > longest_ns / SHOWN_PART {
        true => format!(", +- {} for drifting clocks", render_duration_ns(bound_ns)),
        false => String::new(),
    };
    format!("{} above the least{bound}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use linerate_measure::one_way::OneWaySource;

    use super::*;

    fn one(direction: Direction, least_ns: u64, bound_ns: u64) -> OneWay {
        let queueing_ns = Some(Latency {
            count: 400,
            p50: Some(1_200_000),
            p90: Some(2_000_000),
            p99: Some(14_000_000),
            max: 15_000_000,
            ..Latency::default()
        });
        let source = OneWaySource::Datagrams;
        OneWay { direction, source, least_ns, bound_ns, queueing_ns, queueing_bound_ns: 10_000 }
    }

    #[test]
    fn a_split_is_unknown_where_the_bounds_are_half_the_round_trip() {
        let half = [one(Direction::Up, 20, 20), one(Direction::Down, 20, 20)];
        assert!(is_split_unknown(&half));
        assert!(!is_split_unknown(&[one(Direction::Up, 30, 4), one(Direction::Down, 10, 4)]));
        assert_eq!(
            render_least(&one(Direction::Up, 30_100_000, 20_000_000)),
            "up 30.1 ms +- 20.0 ms"
        );
    }

    #[test]
    fn queueing_has_the_quantiles_that_are_known_and_a_bound_that_matters() {
        let known = one(Direction::Up, 20, 20).queueing_ns.unwrap();
        assert_eq!(render_queueing(&known, 10_000), "p50 1.20 ms, p99 14.0 ms above the least");
        let (p90, p99) = (None, None);
        let few = Latency { p90, p99, ..known };
        assert_eq!(
            render_queueing(&few, 5_000_000),
            "p50 1.20 ms above the least, +- 5.00 ms for drifting clocks"
        );
        assert_eq!(
            render_queueing(&Latency { p50: None, ..few }, 0),
            "greatest 15.0 ms above the least"
        );
    }
}
