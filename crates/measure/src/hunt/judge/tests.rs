use super::super::{LatencyLimit, Limits, RateUnit};
use super::*;

const INTERVAL_NS: u64 = 50_000_000;

fn goal(loss_ratio: f64, latencies: Vec<LatencyLimit>) -> Goal {
    Goal {
        method: Method::Sequential,
        unit: RateUnit::BitsPerSecond,
        low: 1,
        high: 1_000_000,
        step: 1,
        per_item: 1,
        limits: Limits { loss_ratio, latencies },
        trial_ns: 10_000_000_000,
    }
}

fn trial(rate: u64, purpose: Purpose, longest_ns: u64) -> Trial {
    Trial { number: 1, rate, purpose, longest_ns }
}

/// Feeds intervals of 50 ms until the judge decides, and returns how many it took.
fn feed(
    judge: &mut Judge,
    intervals: u64,
    mut interval: impl FnMut(u64) -> (u64, u64, Vec<Bad>),
) -> u64 {
    for number in 0..intervals {
        let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
        let (sent, arrived, bad) = interval(number);
        judge.handle(&Observation::Sent { from_ns, to_ns, items: sent });
        judge.handle(&Observation::Arrived { from_ns, to_ns, items: arrived, bad });
        if judge.verdict().is_some() {
            return number + 1;
        }
    }
    intervals
}

#[test]
fn one_missing_request_is_no_shortage_and_two_are() {
    // 100 requests/s for 300 ms are 30.
    for (missing, verdict) in [
        (0, TrialVerdict::Pass),
        (1, TrialVerdict::Pass),
        (2, TrialVerdict::Invalid { why: Shortfall::Offered }),
    ] {
        let mut judge = Judge::new(&goal(0.1, vec![]), &trial(100, Purpose::Search, 300_000_000));
        feed(&mut judge, 6, |number| {
            let sent = if number < missing { 4 } else { 5 };
            (sent, sent, vec![])
        });
        assert_eq!(judge.finish(), verdict, "{missing}");
    }
}

#[test]
fn an_interval_of_less_than_half_invalidates_except_the_one_that_ends_the_trial() {
    let goal = goal(0.1, vec![]);
    let uneven = Some(TrialVerdict::Invalid { why: Shortfall::Uneven });
    for (place, verdict) in [(3, uneven), (19, None)] {
        let mut judge = Judge::new(&goal, &trial(1_000, Purpose::Fixed, 1_000_000_000));
        feed(&mut judge, 20, |number| {
            let sent = if number == place { 23 } else { 51 };
            (sent, sent, vec![])
        });
        assert_eq!(judge.verdict(), verdict, "{place}");
    }
    let mut judge = Judge::new(&goal, &trial(1_000, Purpose::Fixed, 1_000_000_000));
    assert_eq!(feed(&mut judge, 20, |number| (if number == 2 { 77 } else { 50 }, 50, vec![])), 3);
    assert_eq!(judge.verdict(), uneven);
}

#[test]
fn a_sender_that_falls_short_is_invalid_whatever_is_lost() {
    let mut judge = Judge::new(&goal(0.01, vec![]), &trial(1_000, Purpose::Search, 10_000_000_000));
    feed(&mut judge, 200, |_| (40, 20, vec![Bad { items: 20, events: 10 }]));
    assert_eq!(judge.verdict(), Some(TrialVerdict::Invalid { why: Shortfall::Offered }));
}

#[test]
fn a_queue_that_grows_by_1_percent_fails_within_3_s_although_nothing_is_lost() {
    let mut judge =
        Judge::new(&goal(0.001, vec![]), &trial(10_000, Purpose::Search, 10_000_000_000));
    let intervals =
        feed(&mut judge, 200, |number| (500, if number < 4 { 500 } else { 495 }, vec![]));
    assert_eq!(judge.verdict(), Some(TrialVerdict::Fail { why: Breach::Queue }));
    assert!(intervals <= 60, "{intervals}");
    let growth = judge.seen().growth_ratio.unwrap();
    assert!((0.005..0.015).contains(&growth), "{growth}");
}

#[test]
fn ends_that_count_at_other_times_show_no_growth() {
    let mut judge =
        Judge::new(&goal(0.001, vec![]), &trial(10_000, Purpose::Search, 10_000_000_000));
    for number in 0..60 {
        let from_ns = number * INTERVAL_NS;
        judge.handle(&Observation::Sent { from_ns, to_ns: from_ns + INTERVAL_NS, items: 500 });
        let from_ns = from_ns + 17_000_000;
        let to_ns = from_ns + INTERVAL_NS;
        judge.handle(&Observation::Arrived { from_ns, to_ns, items: 500, bad: vec![] });
    }
    assert_eq!(judge.verdict(), Some(TrialVerdict::Pass));
}

#[test]
fn a_missing_sample_of_either_end_is_no_queue() {
    for missing_of_receiver in [true, false] {
        let goal = goal(0.001, vec![]);
        let mut judge = Judge::new(&goal, &trial(10_000, Purpose::Search, 10_000_000_000));
        for number in 0..80 {
            let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
            let is_missing = [12, 25].contains(&number);
            if !is_missing || missing_of_receiver {
                judge.handle(&Observation::Sent { from_ns, to_ns, items: 500 });
            }
            if !is_missing || !missing_of_receiver {
                judge.handle(&Observation::Arrived { from_ns, to_ns, items: 500, bad: vec![] });
            }
        }
        let growth = judge.seen().growth_ratio.unwrap();
        assert!(growth.abs() < 0.001, "{growth}");
        assert_eq!(judge.verdict(), Some(TrialVerdict::Pass), "{missing_of_receiver}");
    }
}

#[test]
fn slow_requests_fail_a_latency_limit_and_not_the_one_on_losses() {
    let p99 = LatencyLimit { percentile: 99.0, bound_ns: 1_000_000 };
    let goal = Goal { unit: RateUnit::RequestsPerSecond, ..goal(0.01, vec![p99]) };
    let run = |lost: u64, slow: u64| {
        let mut judge = Judge::new(&goal, &trial(10_000, Purpose::Search, 2_000_000_000));
        assert_eq!(feed(&mut judge, 40, |_| (500, 500, vec![])), 40);
        let bad = vec![Bad::one_event(lost), Bad::one_event(slow)];
        judge.handle(&Observation::Totals { items: 20_000 - lost, bad });
        judge.finish()
    };
    assert_eq!(run(0, 200), TrialVerdict::Pass);
    assert_eq!(run(0, 201), TrialVerdict::Fail { why: Breach::Latency });
    assert_eq!(run(200, 0), TrialVerdict::Pass);
    assert_eq!(run(201, 0), TrialVerdict::Fail { why: Breach::Loss });
}

#[test]
fn requests_that_pile_up_fail_before_the_end() {
    let goal = Goal { unit: RateUnit::RequestsPerSecond, ..goal(0.01, vec![]) };
    let mut judge = Judge::new(&goal, &trial(10_000, Purpose::Search, 10_000_000_000));
    assert!(feed(&mut judge, 200, |_| (500, 400, vec![])) < 60);
    assert_eq!(judge.verdict(), Some(TrialVerdict::Fail { why: Breach::Queue }));
}

#[test]
fn nothing_that_arrives_fails() {
    let mut judge = Judge::new(&goal(0.01, vec![]), &trial(1_000, Purpose::Search, 10_000_000_000));
    for number in 0..200 {
        let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
        judge.handle(&Observation::Sent { from_ns, to_ns, items: 50 });
    }
    assert_eq!(judge.finish(), TrialVerdict::Fail { why: Breach::Nothing });
}

#[test]
fn limit_0_is_judged_by_the_exact_counts_at_the_end() {
    let goal = goal(0.0, vec![]);
    for (lost, verdict) in [(0, TrialVerdict::Pass), (1, TrialVerdict::Fail { why: Breach::Loss })]
    {
        let mut judge = Judge::new(&goal, &trial(1_000, Purpose::Fixed, 2_000_000_000));
        // One that was only overtaken is missing for a while.
        let late = |number| if number == 20 { vec![Bad::one_event(1)] } else { vec![] };
        assert_eq!(feed(&mut judge, 40, |number| (50, 50, late(number))), 40);
        assert_eq!(judge.verdict(), None);
        judge.handle(&Observation::Totals { items: 2_000 - lost, bad: vec![Bad::one_event(lost)] });
        assert_eq!(judge.finish(), verdict);
    }
    let mut judge = Judge::new(&goal, &trial(1_000, Purpose::Fixed, 2_000_000_000));
    assert!(feed(&mut judge, 40, |_| (50, 49, vec![Bad::one_event(1)])) < 12);
}

#[test]
fn numbers_of_any_size_and_times_that_go_back_are_no_panic() {
    let limits = vec![LatencyLimit { percentile: 50.0, bound_ns: 0 }];
    let mut judge = Judge::new(&goal(0.5, limits), &trial(u64::MAX, Purpose::Confirm, u64::MAX));
    let far = Bad { items: u64::MAX, events: u64::MAX };
    for (from_ns, to_ns) in [(0, u64::MAX), (5, 4), (0, 0), (u64::MAX - 1, u64::MAX), (7, 9)] {
        judge.handle(&Observation::Sent { from_ns, to_ns, items: u64::MAX });
        let bad = vec![far; 9];
        judge.handle(&Observation::Arrived { from_ns, to_ns, items: u64::MAX, bad });
    }
    let (_, _) = (judge.finish(), judge.seen());
}

/// The verdict on a sender of 500 items an interval, which sends `sent` of them and has `room` in its transport.
fn verdict_of_sender(sent: impl Fn(u64) -> u64, room: impl Fn(u64) -> (u64, bool)) -> TrialVerdict {
    let mut judge =
        Judge::new(&goal(0.001, vec![]), &trial(10_000, Purpose::Search, 10_000_000_000));
    for number in 0..200 {
        let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
        let ((refused, is_full), items) = (room(number), sent(number));
        let window_wait_ns = None;
        judge.handle(&Observation::Backpressure {
            from_ns,
            to_ns,
            refused,
            is_full,
            window_wait_ns,
        });
        judge.handle(&Observation::Sent { from_ns, to_ns, items });
        judge.handle(&Observation::Arrived { from_ns, to_ns, items, bad: vec![] });
    }
    judge.finish()
}

#[test]
fn a_rate_that_the_transport_has_no_room_for_fails_and_a_stall_of_the_sender_tells_nothing() {
    let backpressure = TrialVerdict::Fail { why: Breach::Backpressure };
    let has_room = |_| (0, false);
    let is_full = |_| (0, true);
    for sent in [0, 100, 300, 496] {
        assert_eq!(verdict_of_sender(|_| sent, is_full), backpressure, "{sent} of 500");
    }
    // The windows open now and then.
    let bursts = |number: u64| if number.is_multiple_of(2) { 0 } else { 700 };
    assert_eq!(verdict_of_sender(bursts, is_full), backpressure);
    assert_eq!(verdict_of_sender(|_| 500, is_full), TrialVerdict::Pass);
    let uneven = TrialVerdict::Invalid { why: Shortfall::Uneven };
    let offered = TrialVerdict::Invalid { why: Shortfall::Offered };
    assert_eq!(verdict_of_sender(|_| 100, has_room), uneven);
    assert_eq!(verdict_of_sender(|_| 400, has_room), offered);
    // A machine that stalls once has no excuse in what its transport held at another time.
    let stalls = |number: u64| if number == 15 { 0 } else { 500 };
    assert_eq!(verdict_of_sender(stalls, |number| (0, number < 5)), uneven);
}

#[test]
fn waits_for_windows_and_drops_of_the_own_queue_are_backpressure() {
    let mut judge =
        Judge::new(&goal(0.001, vec![]), &trial(10_000, Purpose::Search, 10_000_000_000));
    let (refused, is_full) = (0, false);
    // The counter has begun long before, and is read at the end of the warm-up.
    let window_wait_ns = Some(7_000_000_000);
    judge.handle(&Observation::Backpressure {
        from_ns: 0,
        to_ns: 0,
        refused,
        is_full,
        window_wait_ns,
    });
    for number in 0..60 {
        let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
        let window_wait_ns = Some(7_000_000_000 + (number + 1) * INTERVAL_NS * 9 / 10);
        judge.handle(&Observation::Backpressure {
            from_ns,
            to_ns,
            refused,
            is_full,
            window_wait_ns,
        });
        judge.handle(&Observation::Sent { from_ns, to_ns, items: 200 });
        judge.handle(&Observation::Arrived { from_ns, to_ns, items: 200, bad: vec![] });
    }
    let backpressure = TrialVerdict::Fail { why: Breach::Backpressure };
    assert_eq!(judge.finish(), backpressure);
    assert_eq!(verdict_of_sender(|_| 300, |_| (200, false)), backpressure);
    // Few drops break the limit on losses.
    let loss = TrialVerdict::Fail { why: Breach::Loss };
    assert_eq!(verdict_of_sender(|_| 497, |_| (3, false)), loss);
}
