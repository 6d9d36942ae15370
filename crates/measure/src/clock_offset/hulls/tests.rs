use proptest::prelude::*;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A server whose clock drifts from the client's at a constant rate.
#[derive(Clone, Copy)]
struct Clocks {
    offset_ns: i64,
    drift_ppm: f64,
}

impl Clocks {
    fn offset_at(self, at_ns: u64) -> f64 {
        self.offset_ns as f64 + at_ns as f64 * self.drift_ppm / 1e6
    }

    fn server_ns(self, at_ns: u64) -> i64 {
        at_ns as i64 + self.offset_at(at_ns).floor() as i64
    }

    /// Records a round trip; when it ended.
    fn ping(self, hulls: &mut ClockHulls, at_ns: u64, (up_ns, down_ns): (u64, u64)) -> u64 {
        let (arrived_ns, back_ns) = (at_ns + up_ns, at_ns + up_ns + down_ns);
        let server_ns = self.server_ns(arrived_ns);
        hulls.record(
            at_ns,
            back_ns,
            RoundTrip {
                client_sent_ns: at_ns as i64,
                server_received_ns: server_ns,
                server_sent_ns: server_ns,
                client_received_ns: back_ns as i64,
            },
        );
        back_ns
    }
}

/// Ten pings a second for ten seconds over paths of 30 and 10 ms with queues; what came of them.
fn ten_seconds(clocks: Clocks, queues_ns: &[(u64, u64)]) -> ClockHulls {
    let mut hulls = ClockHulls::new();
    for (number, (up_ns, down_ns)) in queues_ns.iter().enumerate() {
        let at_ns = number as u64 * SECOND_NS / 10;
        clocks.ping(&mut hulls, at_ns, (30_000_000 + up_ns, 10_000_000 + down_ns));
    }
    hulls
}

#[test]
fn no_ping_bounds_nothing_and_one_bounds_with_its_round_trip() {
    let mut hulls = ClockHulls::new();
    assert!(hulls.solve().is_none());
    let clocks = Clocks { offset_ns: -7_000, drift_ppm: 0.0 };
    clocks.ping(&mut hulls, 1_000, (300, 100));
    let lines = hulls.solve().unwrap();
    assert_eq!(lines.bounds_at(1_400), (-7_101, -6_698));
    assert_eq!(lines.drift_ppb(), (-500_000.0, 500_000.0));
    // A second later the clocks may have drifted apart by half a millisecond.
    let (least, most) = lines.bounds_at(SECOND_NS + 1_400);
    assert!((-507_110..=-507_090).contains(&least) && (493_300..=493_310).contains(&most));
}

#[test]
fn a_hull_keeps_the_lowest_points_only() {
    let mut hull = Hull::default();
    for point in [(0, 5), (1, 9), (2, 4), (3, 5), (4, 9), (5, 1), (5, 3), (4, 0), (9, 0)] {
        hull.push(point);
    }
    assert_eq!(hull.points, [(0, 5), (5, 1), (9, 0)]);
    hull.push((9, -4));
    assert_eq!(hull.points, [(0, 5), (9, -4)]);
}

#[test]
fn a_stepped_clock_leaves_no_offset() {
    let (mut hulls, still) = (ClockHulls::new(), Clocks { offset_ns: 0, drift_ppm: 0.0 });
    for number in 0..20 {
        let stepped = Clocks { offset_ns: if number < 10 { 0 } else { 5_000_000 }, ..still };
        stepped.ping(&mut hulls, number * SECOND_NS / 10, (100_000, 100_000));
    }
    assert_eq!(hulls.pings(), 20);
    assert!(hulls.solve().is_none());
}

#[test]
fn many_vertices_are_thinned_and_the_bounds_still_hold() {
    let (mut hulls, clocks) = (ClockHulls::new(), Clocks { offset_ns: 5, drift_ppm: 20.0 });
    for number in 0..5_000_u64 {
        // Each delay is below the chord of its neighbours.
        let delay_ns = 1_000_000 + number.abs_diff(2_500).pow(2) / 8;
        clocks.ping(&mut hulls, number * 10_000_000, (delay_ns, delay_ns));
    }
    assert!(hulls.upper.points.len() <= MAX_VERTICES);
    let lines = hulls.solve().unwrap();
    for second in 0..50 {
        let (least, most) = lines.bounds_at(second * SECOND_NS);
        let truth = clocks.offset_at(second * SECOND_NS);
        assert!(least as f64 <= truth && truth <= most as f64, "{second}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Both paths and their queues differ, and the clocks drift.
    #[test]
    fn offset_and_drift_are_within_the_bounds_at_any_time(
        offset_ns in -1_000_000_000_000_i64..1_000_000_000_000,
        drift_ppm in -100.0..100.0_f64,
        queues_ns in proptest::collection::vec((0_u64..40_000_000, 0_u64..5_000_000), 100),
    ) {
        let clocks = Clocks { offset_ns, drift_ppm };
        let lines = ten_seconds(clocks, &queues_ns).solve().unwrap();
        for tenth in 0..=100 {
            let at_ns = tenth * SECOND_NS / 10;
            let (truth, (least, most)) = (clocks.offset_at(at_ns), lines.bounds_at(at_ns));
            prop_assert!(least as f64 <= truth && truth <= most as f64, "{least} {truth} {most}");
            // Half of the round trip of 40 ms, and what pings wait in the queues beside their delays.
            prop_assert!(most - least < 90_000_000, "{}", most - least);
        }
        let (least, most) = lines.drift_ppb();
        prop_assert!(least <= drift_ppm * 1e3 && drift_ppm * 1e3 <= most);
    }

    /// On a path of 0.2 ms the drift is known to a few parts per million.
    #[test]
    fn a_short_path_tells_the_drift(
        drift_ppm in -100.0..100.0_f64,
        queues_ns in proptest::collection::vec((0_u64..20_000, 0_u64..20_000), 100),
    ) {
        let (mut hulls, clocks) = (ClockHulls::new(), Clocks { offset_ns: 3, drift_ppm });
        for (number, (up_ns, down_ns)) in queues_ns.iter().enumerate() {
            let delays_ns = (100_000 + up_ns, 100_000 + down_ns);
            clocks.ping(&mut hulls, number as u64 * SECOND_NS / 10, delays_ns);
        }
        let (least, most) = hulls.solve().unwrap().drift_ppb();
        prop_assert!(least <= drift_ppm * 1e3 && drift_ppm * 1e3 <= most);
        prop_assert!(most - least < 50_000.0, "{}", most - least);
    }

    #[test]
    fn no_stamps_panic(
        trips in proptest::collection::vec(any::<(u64, u64, i64, i64, i64, i64)>(), 0..20),
        at_ns: u64,
    ) {
        let mut hulls = ClockHulls::new();
        for (sent_ns, received_ns, t1, t2, t3, t4) in trips {
            let (client_sent_ns, server_received_ns) = (t1, t2);
            let (server_sent_ns, client_received_ns) = (t3, t4);
            let trip =
                RoundTrip { client_sent_ns, server_received_ns, server_sent_ns, client_received_ns };
            hulls.record(sent_ns, received_ns, trip);
        }
        if let Some(lines) = hulls.solve() {
            let (least, most) = lines.bounds_at(at_ns);
            prop_assert!(least <= most);
        }
    }
}
