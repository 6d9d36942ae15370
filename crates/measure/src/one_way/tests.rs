use proptest::prelude::*;

use super::*;
use crate::clock_offset::ClockHulls;

const SECOND_NS: u64 = 1_000_000_000;
const START_NS: u64 = 5 * SECOND_NS;

/// A path between two clocks that differ by an offset and drift apart.
#[derive(Clone, Copy, Debug)]
struct Path {
    offset_ns: i64,
    drift_ppm: f64,
    up_ns: u64,
    down_ns: u64,
}

impl Path {
    fn server_ns(self, at_ns: u64) -> i64 {
        at_ns as i64 + self.offset_ns + (at_ns as f64 * self.drift_ppm / 1e6) as i64
    }

    /// A ping that waits in queues.
    fn ping(self, at_ns: u64, (up_ns, down_ns): (u64, u64)) -> RoundTrip {
        let there_ns = at_ns + self.up_ns + up_ns;
        let server_ns = self.server_ns(there_ns);
        RoundTrip {
            client_sent_ns: at_ns as i64,
            server_received_ns: server_ns,
            server_sent_ns: server_ns,
            client_received_ns: (there_ns + self.down_ns + down_ns) as i64,
        }
    }

    /// What pings say of it, of which each waits as told; from the second second on there is load.
    fn observed(self, queues_ns: &[(u64, u64)]) -> (ClockHulls, PingDelays, (u64, u64)) {
        let (mut hulls, mut pings) = (ClockHulls::new(), PingDelays::default());
        for (number, queue_ns) in queues_ns.iter().enumerate() {
            let trip = self.ping(START_NS + number as u64 * SECOND_NS / 10, *queue_ns);
            let ns = |ns: i64| u64::try_from(ns).unwrap();
            hulls.record(ns(trip.client_sent_ns), ns(trip.client_received_ns), trip);
            pings.record(trip);
        }
        let to_ns = START_NS + queues_ns.len() as u64 * SECOND_NS / 10;
        (hulls, pings, (START_NS + SECOND_NS, to_ns))
    }
}

#[test]
fn values_are_kept_evenly() {
    let mut thinned = Thinned::new(4);
    (0..21).for_each(|value| thinned.push(value));
    assert_eq!(thinned.kept, [0, 8, 16]);
    let mut few = Thinned::new(4);
    (0..4).for_each(|value| few.push(value));
    assert_eq!(few.kept, [0, 1, 2, 3]);
}

#[test]
fn transits_are_above_the_least_whatever_the_clocks_say() {
    let mut transits = Transits::default();
    assert_eq!(transits.transit(), None);
    transits.record(0, 77);
    assert_eq!(transits.transit(), None, "no send time");
    // The receiver's clock is far behind the sender's.
    for number in 0..2_000_u64 {
        let sent_ns = 1_000_000_000 + number * 1000;
        transits.record(sent_ns, number * 1000 + 50 + number % 10);
    }
    let transit = transits.transit().unwrap();
    assert_eq!((transit.least_ns, transit.least_at_ns), (-999_999_950, 50));
    let above = transit.above_least_ns;
    assert!((512..=1024).contains(&above.count) && above.max <= 9 && above.p99.is_some());
}

#[test]
fn queues_of_each_direction_are_told_apart() {
    let path = Path { offset_ns: -8, drift_ppm: 50.0, up_ns: 30_000_000, down_ns: 10_000_000 };
    // A queue of 7 ms in front of every second ping up, from when the load begins.
    let queue = |number: u64| if number >= 10 && number.is_multiple_of(2) { 7_000_000 } else { 0 };
    let queues: Vec<_> = (0..210).map(|number| (queue(number), 0)).collect();
    let (hulls, pings, measured_ns) = path.observed(&queues);
    let lines = hulls.solve().unwrap();
    let evidence =
        OneWayEvidence { lines: &lines, pings: &pings, measured_ns, server: None, client: None };
    let [up, down] = evidence.delays()[..] else { panic!("two directions") };
    assert_eq!((up.direction, down.direction), (Direction::Up, Direction::Down));
    let queueing = |one: OneWay| one.queueing_ns.unwrap();
    let near = |value: u64, truth: u64, bound: u64| value.abs_diff(truth) <= bound;
    assert!(near(queueing(up).max, 7_000_000, up.queueing_bound_ns), "{up:?}");
    assert!(near(queueing(up).min, 0, up.queueing_bound_ns), "{up:?}");
    assert!(queueing(up).p90.unwrap() > queueing(down).max, "{up:?} {down:?}");
    assert!(near(queueing(down).max, 0, down.queueing_bound_ns), "{down:?}");
    assert!(near(up.least_ns, path.up_ns, up.bound_ns), "{up:?}");
    assert!(near(down.least_ns, path.down_ns, down.bound_ns), "{down:?}");
    assert!(up.bound_ns > 19_000_000, "the split of a round trip is unknown: {up:?}");
}

#[test]
fn a_delay_that_would_be_negative_is_none() {
    let (up, pings) = ((Direction::Up, OneWaySource::Pings), (None, 0));
    assert_eq!(one_way(up, (-30, -10), pings), None);
    let half = one_way(up, (-30, 10), pings).unwrap();
    assert_eq!((half.least_ns, half.bound_ns), (5, 5));
    let odd = one_way(up, (-30, 11), pings).unwrap();
    assert_eq!((odd.least_ns, odd.bound_ns), (6, 6));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// By pings and by datagrams, over paths and queues of any symmetry.
    #[test]
    fn delays_are_within_their_bounds_and_never_negative(
        offset_ns in -4_000_000_000_i64..1_000_000_000_000,
        drift_ppm in -100.0..100.0_f64,
        up_ns in 0_u64..40_000_000,
        down_ns in 0_u64..40_000_000,
        queues_ns in proptest::collection::vec((0_u64..40_000_000, 0_u64..40_000_000), 30..110),
        // Queues may grow as fast as the clocks drift apart, so that a late datagram looks like the quickest.
        growth_ns in (0_u64..200, 0_u64..200),
    ) {
        let path = Path { offset_ns, drift_ppm, up_ns, down_ns };
        let (hulls, pings, measured_ns) = path.observed(&queues_ns);
        let lines = hulls.solve().unwrap();
        let [mut to_server, mut to_client] = [Transits::default(), Transits::default()];
        for number in 0..2_000_u64 {
            let at_ns = measured_ns.0 + number * 1_000_000;
            let server_ns = |at_ns| u64::try_from(path.server_ns(at_ns)).unwrap();
            to_server.record(at_ns, server_ns(at_ns + up_ns + number * growth_ns.0));
            to_client.record(server_ns(at_ns), at_ns + down_ns + number * growth_ns.1);
        }
        let (server, client) = (to_server.transit(), to_client.transit());
        for (server, client) in [(None, None), (server.as_ref(), client.as_ref())] {
            let evidence =
                OneWayEvidence { lines: &lines, pings: &pings, measured_ns, server, client };
            let delays = evidence.delays();
            prop_assert_eq!(delays.len(), 2);
            for one in delays {
                let truth_ns = if one.direction == Direction::Up { up_ns } else { down_ns };
                // A ping has waited in queues, the first datagram here has not.
                let most_ns = if one.source == OneWaySource::Pings { 40_000_000 } else { 0 };
                let least_ns = one.least_ns - one.bound_ns;
                prop_assert!(least_ns <= truth_ns + most_ns + 2, "{:?} {}", one, truth_ns);
                prop_assert!(one.least_ns + one.bound_ns + 2 >= truth_ns, "{:?} {}", one, truth_ns);
            }
        }
    }

    #[test]
    fn no_stamps_panic(
        stamps in proptest::collection::vec(any::<(i64, i64, i64, i64)>(), 1..20),
        transit: (i64, u64),
        measured_ns: (u64, u64),
    ) {
        let (mut hulls, mut pings) = (ClockHulls::new(), PingDelays::default());
        for (t1, t2, t3, t4) in stamps {
            let trip = RoundTrip {
                client_sent_ns: t1,
                server_received_ns: t2,
                server_sent_ns: t3,
                client_received_ns: t4,
            };
            hulls.record(t1.unsigned_abs(), t4.unsigned_abs(), trip);
            pings.record(trip);
        }
        let of_peer = Transit {
            least_ns: transit.0,
            least_at_ns: transit.1,
            above_least_ns: Latency::default(),
            quarters: None,
        };
        let Some(lines) = hulls.solve() else { return Ok(()) };
        let server = Some(&of_peer);
        for (server, client) in [(server, server), (None, None)] {
            let evidence =
                OneWayEvidence { lines: &lines, pings: &pings, measured_ns, server, client };
            let _ = evidence.delays();
        }
    }
}
