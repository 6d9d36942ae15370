use super::super::{Hunt, Limits, Outcome, RateUnit, Step, TrialRecord};
use super::*;

const INTERVAL_NS: u64 = 50_000_000;
const PASS: Option<TrialVerdict> = Some(TrialVerdict::Pass);

fn goal(loss_ratio: f64) -> Goal {
    Goal {
        method: Method::Sequential,
        unit: RateUnit::BitsPerSecond,
        low: 1_000,
        high: 100_000,
        step: 1,
        per_item: 1,
        limits: Limits { loss_ratio, latencies: Vec::new() },
        trial_ns: 10_000_000_000,
    }
}

fn trial_at(rate: u64) -> Trial {
    let Step::Run(trial) = Hunt::new(Goal { high: rate, ..goal(0.001) }).poll_step() else {
        panic!("{rate}")
    };
    trial
}

/// One interval of one pair: what it sent, what arrived and what was lost.
fn feed(judge: &mut JointJudge, pair: usize, number: u64, (sent, arrived, lost): (u64, u64, u64)) {
    // No end counts exactly at the end of an interval.
    let shift_ns = pair as u64 * 3_000_000;
    let (from_ns, to_ns) = (number * INTERVAL_NS + shift_ns, (number + 1) * INTERVAL_NS + shift_ns);
    judge.handle(pair, &Observation::Sent { from_ns, to_ns, items: sent });
    let bad = vec![Bad { items: lost, events: lost }];
    judge.handle(pair, &Observation::Arrived { from_ns, to_ns, items: arrived, bad });
}

/// A trial of pairs, until it is decided; `interval` says what a pair counts in one.
fn run(
    pairs: usize,
    interval: impl Fn(usize, u64) -> (u64, u64, u64),
) -> (Option<TrialVerdict>, JointJudge) {
    let mut judge = JointJudge::new(&goal(0.001), &trial_at(10_000), pairs, INTERVAL_NS);
    for number in 0..200 {
        for pair in 0..pairs {
            feed(&mut judge, pair, number, interval(pair, number));
        }
        if judge.verdict().is_some() {
            break;
        }
    }
    (judge.verdict(), judge)
}

#[test]
fn the_sum_over_all_pairs_decides() {
    assert_eq!(run(4, |_, _| (500, 500, 0)).0, PASS);
    // One pair of four loses 0.2 %: all together 0.05 %.
    let (verdict, judge) = run(4, |pair, _| if pair == 2 { (500, 499, 1) } else { (500, 500, 0) });
    assert_eq!(verdict, PASS);
    assert_eq!(judge.worst(TrialVerdict::Pass), 2);
    // Half of what one pair sends is more than 0.1 % of all.
    let (verdict, judge) =
        run(4, |pair, _| if pair == 1 { (500, 250, 250) } else { (500, 500, 0) });
    let fail = TrialVerdict::Fail { why: Breach::Loss };
    assert_eq!(verdict, Some(fail));
    assert_eq!(judge.worst(fail), 1);
    assert!(judge.seen_of(1).bad[0].items > 0 && judge.seen_of(0).bad[0].items == 0);
}

#[test]
fn a_queue_of_one_pair_is_seen_in_the_sum() {
    let (verdict, judge) = run(2, |pair, _| if pair == 1 { (500, 480, 0) } else { (500, 500, 0) });
    let queue = TrialVerdict::Fail { why: Breach::Queue };
    assert_eq!(verdict, Some(queue));
    assert_eq!(judge.worst(queue), 1);
}

#[test]
fn a_sender_of_one_pair_that_stalls_or_falls_short_invalidates_the_trial() {
    let stalls = |pair, number| if pair == 1 && number == 3 { (0, 0, 0) } else { (500, 500, 0) };
    let invalid = |why| Some(TrialVerdict::Invalid { why });
    assert_eq!(run(3, stalls).0, invalid(Shortfall::Uneven));
    let (verdict, judge) = run(3, |pair, _| if pair == 2 { (480, 480, 0) } else { (500, 500, 0) });
    assert_eq!(verdict, invalid(Shortfall::Offered));
    assert_eq!(judge.worst(judge.finish()), 2);
}

#[test]
fn an_interval_that_one_pair_left_out_counts_for_none() {
    let mut judge = JointJudge::new(&goal(0.001), &trial_at(10_000), 2, INTERVAL_NS);
    for number in 0..80 {
        for pair in 0..2 {
            // Everything is lost in the interval of which the other pair tells nothing.
            match (pair, number) {
                (0, 7) => {}
                (1, 7) => feed(&mut judge, pair, number, (500, 0, 500)),
                _ => feed(&mut judge, pair, number, (500, 500, 0)),
            }
        }
    }
    assert_eq!(judge.verdict(), PASS);
    assert_eq!(judge.seen().bad[0].items, 0);
    // Without any interval of one pair nothing is known.
    let mut judge = JointJudge::new(&goal(0.001), &trial_at(10_000), 2, INTERVAL_NS);
    (0..10_000).for_each(|number| feed(&mut judge, 0, number, (500, 500, 0)));
    assert_eq!(judge.finish(), TrialVerdict::Invalid { why: Shortfall::Short });
    // Loads that ran one after the other say nothing.
    judge.handle_apart();
    assert_eq!(judge.finish(), TrialVerdict::Invalid { why: Shortfall::Apart });
}

#[test]
fn a_pair_that_ends_its_intervals_late_shows_no_loss_and_no_queue() {
    let mut judge = JointJudge::new(&goal(0.001), &trial_at(10_000), 2, INTERVAL_NS);
    let mut late = 0;
    for number in 1..=80 {
        let (from_ns, to_ns) = ((number - 1) * INTERVAL_NS, number * INTERVAL_NS);
        let counts = |judge: &mut JointJudge, pair, from_ns, to_ns| {
            let items = (to_ns - from_ns) / 100_000;
            judge.handle(pair, &Observation::Sent { from_ns, to_ns, items });
            judge.handle(pair, &Observation::Arrived { from_ns, to_ns, items, bad: vec![] });
        };
        counts(&mut judge, 0, from_ns, to_ns);
        // Up to 40 ms late, and every seventh time not before the next one.
        if number % 7 != 0 {
            let end_ns = to_ns + number * 13 % 40 * 1_000_000;
            counts(&mut judge, 1, late, end_ns);
            late = end_ns;
        }
    }
    assert_eq!(judge.verdict(), PASS);
    let seen = judge.seen();
    assert_eq!((seen.sent_items, seen.bad[0].items), (seen.arrived_items, 0));
    assert!(seen.growth_ratio.unwrap().abs() < 0.001);
}

#[test]
fn numbers_of_any_size_and_times_that_go_back_are_no_panic() {
    let mut judge = JointJudge::new(&goal(0.5), &trial_at(10_000), 2, 0);
    let far = Bad { items: u64::MAX, events: u64::MAX };
    for (from_ns, to_ns) in [(0, u64::MAX), (5, 4), (0, 0), (u64::MAX - 1, u64::MAX), (7, 9)] {
        for pair in 0..3 {
            judge.handle(pair, &Observation::Sent { from_ns, to_ns, items: u64::MAX });
            let bad = vec![far; 9];
            judge.handle(pair, &Observation::Arrived { from_ns, to_ns, items: u64::MAX, bad });
        }
    }
    let _verdict = (judge.finish(), judge.seen(), judge.worst(judge.finish()));
}

#[test]
fn exact_counts_are_added_when_all_pairs_have_told_theirs() {
    let limit_0 = goal(0.0);
    let Step::Run(trial) = Hunt::new(limit_0.clone()).poll_step() else { panic!() };
    let trial = Trial { rate: 10_000, ..trial };
    let mut judge = JointJudge::new(&limit_0, &trial, 2, INTERVAL_NS);
    for number in 0..200 {
        (0..2).for_each(|pair| feed(&mut judge, pair, number, (500, 500, 0)));
    }
    assert_eq!(judge.finish(), TrialVerdict::Pass);
    let totals = |lost| Observation::Totals { items: 9_000, bad: vec![Bad::one_event(lost)] };
    judge.handle(0, &totals(1));
    assert_eq!(judge.finish(), TrialVerdict::Pass);
    judge.handle(1, &totals(2));
    assert_eq!(judge.finish(), TrialVerdict::Fail { why: Breach::Loss });
    assert_eq!(judge.seen().bad[0].items, 3);
}

/// Pairs whose paths carry so much each, and a queue that holds nothing.
fn hunt(capacities: &[u64]) -> (Outcome, Vec<TrialRecord>) {
    let (mut hunt, mut trials) = (Hunt::new(goal(0.001)), Vec::new());
    loop {
        let trial = match hunt.poll_step() {
            Step::Done(outcome) => return (outcome, trials),
            Step::Run(trial) => trial,
        };
        let mut judge = JointJudge::new(hunt.goal(), &trial, capacities.len(), INTERVAL_NS);
        let (mut number, mut owed) = (0, vec![0_u64; capacities.len()]);
        while judge.verdict().is_none() && number * INTERVAL_NS < trial.longest_ns {
            for (pair, capacity) in capacities.iter().enumerate() {
                // Twentieths of an item are carried over.
                owed[pair] += trial.rate;
                let sent = owed[pair] / 20;
                owed[pair] -= sent * 20;
                let lost = sent.saturating_sub(capacity / 20);
                feed(&mut judge, pair, number, (sent, sent - lost, lost));
            }
            number += 1;
        }
        let verdict = hunt.weigh(judge.finish(), &judge.seen());
        let record = TrialRecord::new(hunt.goal(), &trial, verdict, &judge.seen());
        let pairs = capacities.len() as u64;
        hunt.handle_verdict(verdict, record.offered / pairs, record.arrived / pairs);
        trials.push(record);
    }
}

#[test]
fn pairs_in_lockstep_find_the_rate_that_each_may_have() {
    for capacities in [vec![20_000], vec![20_000; 2], vec![20_000; 7]] {
        let (outcome, trials) = hunt(&capacities);
        let rate = outcome.rate().unwrap_or(0);
        assert!((19_900..=20_200).contains(&rate), "{outcome:?} {capacities:?}");
        assert!(trials.len() < 25);
    }
    // The narrowest path of four loses what all together may not.
    let (outcome, _) = hunt(&[20_000, 40_000, 40_000, 40_000]);
    let rate = outcome.rate().unwrap_or(0);
    assert!((19_900..=20_300).contains(&rate), "{outcome:?}");
}
