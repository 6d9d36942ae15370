//! How fairly flows shared what arrived once they had settled.

use std::collections::BTreeMap;

use super::Steadiness;
use crate::fairness::jain_index;
use crate::plan::{Direction, End, Kind, Workload};
use crate::sample::{Role, Sample};

/// The share of the measured part in which queues fill and windows open.
const OPENING: f64 = 0.2;

/// Jain's index of the flows' bytes over the steady part, of two directions that of the less fair one: what arrived in
/// the intervals that begin after the warm-up, or after the first fifth of the measured part where that is longer or no
/// warm-up was looked for. An interval that the end cuts off is left out: what arrives then stood in queues.
///
/// `None` where samples don't tell: loads other than streams that end by time, fewer than two flows, more than samples
/// list, or no whole interval in the steady part.
pub fn steady_fairness(
    workload: &Workload,
    samples: &[Sample],
    steadiness: &[Steadiness],
) -> Option<f64> {
    let End::Time { duration_ns } = workload.end else { return None };
    let is_listed = workload.total_flows() as usize <= Sample::MAX_FLOWS;
    if !matches!(workload.kind, Kind::Stream { .. }) || !is_listed || workload.flows < 2 {
        return None;
    }
    let of_way = |way: &Direction| {
        let of_it = steadiness.iter().find(|one| one.direction == Some(*way));
        let warm_up_ns = of_it.and_then(|one| one.warm_up_ns).unwrap_or(0);
        let opening_ns = (duration_ns as f64 * OPENING) as u64;
        shares(workload, *way, samples, opening_ns.max(warm_up_ns))
    };
    let indices: Vec<f64> =
        workload.directions().iter().map(|way| jain_index(&of_way(way)?)).collect::<Option<_>>()?;
    indices.into_iter().reduce(f64::min)
}

/// The bytes of each flow of one direction in the whole intervals from so long after the measured part began.
fn shares(
    workload: &Workload,
    way: Direction,
    samples: &[Sample],
    opening_ns: u64,
) -> Option<Vec<f64>> {
    let receiver = if way == Direction::Down { Role::Client } else { Role::Server };
    let measured: Vec<&Sample> =
        samples.iter().filter(|one| one.role == receiver && !one.warm_up).collect();
    let began_ns = measured.iter().map(|one| one.from_ns).min()?;
    let steady_from_ns = began_ns.saturating_add(opening_ns);
    let whole_ns = workload.interval_ns / 10 * 9;
    let first = workload.flows;
    let numbers = if way == Direction::Down && workload.direction() == Some(Direction::Both) {
        first..first.saturating_mul(2)
    } else {
        0..first
    };
    let mut bytes: BTreeMap<u32, u64> = numbers.map(|number| (number, 0)).collect();
    let steady = measured.into_iter().filter(|one| {
        one.from_ns >= steady_from_ns && one.to_ns.saturating_sub(one.from_ns) >= whole_ns
    });
    for flow in steady.flat_map(|one| &one.flows) {
        if let Some(sum) = bytes.get_mut(&flow.flow) {
            *sum = sum.saturating_add(flow.received_bytes.unwrap_or(0));
        }
    }
    Some(bytes.into_values().map(|bytes| bytes as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Transport;
    use crate::sample::FlowSample;

    const SECOND_NS: u64 = 1_000_000_000;

    fn workload(direction: Direction, flows: u32, seconds: u64) -> Workload {
        Workload {
            flows,
            end: End::Time { duration_ns: seconds * SECOND_NS },
            ..Workload::stream(direction, Transport::Tcp)
        }
    }

    /// Samples a second long, of flows that received so much in each; the last is cut off after 10 ms.
    fn samples(role: Role, flows: &[&[u64]]) -> Vec<Sample> {
        let count = flows.first().map_or(0, |flow| flow.len());
        let sample = |place: usize| {
            let of = |(number, bytes): (u32, &&[u64])| FlowSample {
                flow: number,
                received_bytes: Some(bytes[place]).filter(|bytes| *bytes > 0),
                ..FlowSample::default()
            };
            let from_ns = place as u64 * SECOND_NS;
            let length_ns = if place + 1 == count { SECOND_NS / 100 } else { SECOND_NS };
            Sample {
                from_ns,
                to_ns: from_ns + length_ns,
                flows: (0..).zip(flows).map(of).collect(),
                ..Sample::nothing(role)
            }
        };
        (0..count).map(sample).collect()
    }

    #[test]
    fn the_opening_burst_and_the_drained_queue_are_no_share() {
        // Three to one by a shaper, whose burst both get alike at first, and whose queue holds more of the slow flow.
        let up = samples(Role::Server, &[&[400, 300, 5], &[300, 100, 90]]);
        let index = steady_fairness(&workload(Direction::Up, 2, 2), &up, &[]).unwrap();
        assert!((index - 0.8).abs() < 1e-12, "{index}");
        let down: Vec<Sample> =
            up.iter().map(|one| Sample { role: Role::Client, ..one.clone() }).collect();
        let index = steady_fairness(&workload(Direction::Down, 2, 2), &down, &[]).unwrap();
        assert!((index - 0.8).abs() < 1e-12, "{index}");
    }

    #[test]
    fn a_longer_warm_up_is_left_out_and_the_measured_part_begins_after_the_omitted_one() {
        let bytes: [&[u64]; 2] = [&[9, 9, 9, 9, 9, 3, 3, 3, 3, 3, 0], &[1; 11]];
        let warm = Steadiness {
            name: "goodput_bps".to_owned(),
            direction: Some(Direction::Up),
            intervals: 40,
            warm_up_ns: Some(5 * SECOND_NS),
            rate: 1.0,
            varied_by: None,
            change: None,
        };
        let up = workload(Direction::Up, 2, 10);
        let index = |samples: &[Sample], steadiness: &[Steadiness]| {
            steady_fairness(&up, samples, steadiness).unwrap()
        };
        let all = samples(Role::Server, &bytes);
        assert!((index(&all, &[warm]) - 0.8).abs() < 1e-12);
        assert!(index(&all, &[]) < 0.75);
        let mut omitted = all;
        omitted[..3].iter_mut().for_each(|sample| sample.warm_up = true);
        assert!((index(&omitted, &[]) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn of_two_directions_the_less_fair_one_counts() {
        let mut both = samples(Role::Server, &[&[0, 1, 0], &[0, 1, 0]]);
        both.extend(samples(Role::Client, &[&[0, 0, 0], &[0, 0, 0], &[1, 3, 0], &[1, 1, 0]]));
        let index = steady_fairness(&workload(Direction::Both, 2, 2), &both, &[]).unwrap();
        assert!((index - 0.8).abs() < 1e-12, "{index}");
    }

    #[test]
    fn no_index_where_samples_do_not_tell() {
        let up = samples(Role::Server, &[&[4, 3, 5], &[3, 1, 9]]);
        let by_time = workload(Direction::Up, 2, 2);
        assert_eq!(steady_fairness(&by_time, &up[..1], &[]), None);
        assert_eq!(steady_fairness(&by_time, &[], &[]), None);
        assert_eq!(steady_fairness(&workload(Direction::Up, 1, 2), &up, &[]), None);
        assert_eq!(steady_fairness(&workload(Direction::Up, 65, 2), &up, &[]), None);
        let by_bytes = Workload { end: End::Bytes { bytes: 7 }, ..by_time.clone() };
        assert_eq!(steady_fairness(&by_bytes, &up, &[]), None);
        let rr = Workload { flows: 2, ..Workload::rr(Transport::Tcp) };
        assert_eq!(steady_fairness(&rr, &up, &[]), None);
        // A flow that got nothing has a share of nothing.
        let one = samples(Role::Server, &[&[4, 3, 5]]);
        assert_eq!(steady_fairness(&by_time, &one, &[]), Some(0.5));
    }
}
