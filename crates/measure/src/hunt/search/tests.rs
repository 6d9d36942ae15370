use super::super::{Bad, Breach, LatencyLimit, Limits, RateUnit};
use super::*;

const FAIL: TrialVerdict = TrialVerdict::Fail { why: Breach::Loss };
const INVALID: TrialVerdict = TrialVerdict::Invalid { why: Shortfall::Offered };

fn goal(low: u64, high: u64, loss_ratio: f64) -> Goal {
    Goal {
        method: Method::Sequential,
        unit: RateUnit::RequestsPerSecond,
        low,
        high,
        step: 1,
        per_item: 1,
        limits: Limits { loss_ratio, latencies: Vec::new() },
        trial_ns: 10_000_000_000,
    }
}

/// Runs a hunt to its end and returns what was asked.
fn run(
    goal: Goal,
    mut verdict: impl FnMut(&Trial) -> (TrialVerdict, u64),
) -> (Outcome, Vec<Trial>) {
    let (mut hunt, mut trials) = (Hunt::new(goal), Vec::new());
    loop {
        match hunt.poll_step() {
            Step::Done(outcome) => return (outcome, trials),
            Step::Run(trial) => {
                let (verdict, arrived) = verdict(&trial);
                hunt.handle_verdict(verdict, trial.rate, arrived);
                trials.push(trial);
            }
        }
    }
}

/// A path that carries so much and drops the rest.
fn carries(capacity: u64) -> impl FnMut(&Trial) -> (TrialVerdict, u64) {
    move |trial| match trial.rate <= capacity {
        true => (TrialVerdict::Pass, trial.rate),
        false => (FAIL, capacity),
    }
}

#[test]
fn both_ends_of_the_last_bracket_are_tested_again() {
    let (outcome, trials) = run(goal(1_000, 1_000_000, 0.001), carries(87_000));
    let Outcome::Found { rate, failing_rate } = outcome else { panic!("{outcome:?}") };
    assert_eq!(rate, 87_000);
    assert!(failing_rate <= 87_436, "{failing_rate}");
    let rates: Vec<u64> = trials.iter().map(|trial| trial.rate).collect();
    assert_eq!(rates[..3], [1_000_000, 87_000, 87_435]);
    assert_eq!(rates.iter().filter(|&&rate| rate == failing_rate).count(), 2);
    assert_eq!(
        trials.last().map(|trial| (trial.rate, trial.purpose)),
        Some((rate, Purpose::Confirm))
    );
    assert_eq!(trials.iter().map(|trial| trial.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn ends_of_the_range_are_answers_of_their_own() {
    let (outcome, trials) = run(goal(1_000, 5_000, 0.001), carries(9_000));
    assert_eq!(outcome, Outcome::AtLeast { rate: 5_000 });
    assert_eq!(trials.len(), 2);
    let (outcome, _) = run(goal(1_000, 5_000, 0.001), carries(10));
    assert_eq!(outcome, Outcome::Below { rate: 1_000 });
    assert_eq!(run(goal(7, 7, 0.001), carries(9)).0, Outcome::Keeps { rate: 7 });
    assert_eq!(run(goal(7, 7, 0.001), carries(5)).0, Outcome::Breaks { rate: 7 });
}

#[test]
fn small_numbers_end_with_neighbours() {
    for capacity in 1..20 {
        let (outcome, _) = run(goal(1, 20, 0.001), carries(capacity));
        assert_eq!(outcome, Outcome::Found { rate: capacity, failing_rate: capacity + 1 });
    }
}

#[test]
fn a_guess_of_half_the_capacity_is_left_in_growing_steps() {
    let collapses = |trial: &Trial| match trial.rate <= 50_000 {
        true => (TrialVerdict::Pass, trial.rate),
        false => (FAIL, 25_000),
    };
    let (outcome, trials) = run(goal(1_000, 1_000_000, 0.001), collapses);
    let rate = outcome.rate().unwrap();
    assert!((49_700..=50_000).contains(&rate), "{rate}");
    assert!(trials.len() <= 20, "{}", trials.len());
}

#[test]
fn a_sender_that_never_offers_a_rate_ends_the_hunt_after_3_trials() {
    let (outcome, trials) = run(goal(1, 100, 0.001), |_| (INVALID, 10));
    assert_eq!(outcome, Outcome::SenderLimited { rate: 100, offered: 100 });
    assert_eq!(trials.len(), 3);
    let stalls = TrialVerdict::Invalid { why: Shortfall::Uneven };
    let (outcome, trials) = run(goal(1, 100, 0.001), |_| (stalls, 10));
    assert_eq!((outcome, trials.len()), (Outcome::SenderStalls { rate: 100 }, 10));
    let too_few = TrialVerdict::Invalid { why: Shortfall::Short };
    let (outcome, trials) = run(goal(1, 100, 0.001), |_| (too_few, 10));
    assert_eq!((outcome, trials.len()), (Outcome::TooFewSamples { rate: 100 }, 3));
    // Now and then is no matter.
    let mut path = carries(87_000);
    let mut number = 0;
    let (outcome, _) = run(goal(1_000, 1_000_000, 0.001), |trial| {
        number += 1;
        if number % 3 == 0 { path(trial) } else { (INVALID, 0) }
    });
    assert_eq!(outcome.rate(), Some(87_000));
}

#[test]
fn a_path_that_changes_its_mind_is_unsteady() {
    let mut state = 7;
    let (outcome, trials) = run(goal(1_000, 1_000_000, 0.001), |trial| {
        let capacity =
            if crate::random::next_word(&mut state).is_multiple_of(2) { 80_000 } else { 90_000 };
        carries(capacity)(trial)
    });
    assert!(trials.len() <= 25, "{}", trials.len());
    match outcome {
        Outcome::Unsteady { low, high } => {
            assert!(low <= 80_000 && high >= 90_000, "{low} {high}");
        }
        // By chance.
        Outcome::Found { rate, .. } => assert!((79_000..=90_000).contains(&rate), "{rate}"),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn three_reversals_at_one_rate_are_unsteady() {
    let mut hunt = Hunt::new(goal(1_000, 1_000_000, 0.001));
    for (rate, passes) in [(40_000, true), (60_000, false), (50_000, true)] {
        hunt.note(rate, passes, Purpose::Search);
    }
    for passes in [false, true, false] {
        assert!(hunt.choose().is_ok());
        assert!(hunt.note(50_000, passes, Purpose::Search));
    }
    assert_eq!(hunt.choose(), Err(Outcome::Unsteady { low: 40_000, high: 60_000 }));
}

#[test]
fn limit_0_has_trials_of_the_full_time() {
    let (outcome, trials) = run(goal(1_000, 1_000_000, 0.0), carries(87_000));
    assert_eq!(outcome.rate(), Some(87_000));
    assert!(trials.iter().all(|trial| trial.purpose == Purpose::Fixed));
    assert!(trials.iter().all(|trial| trial.longest_ns == 10_000_000_000));
    let mut goal = goal(7, 9, 0.001);
    goal.limits.latencies = vec![LatencyLimit { percentile: 100.0, bound_ns: 1 }];
    assert!(run(goal, carries(8)).1.iter().all(|trial| trial.purpose == Purpose::Fixed));
}

#[test]
fn the_originals_search_never_runs_the_ends() {
    let goal = Goal { method: Method::Bisection, ..goal(50, 400, 0.0) };
    let (outcome, trials) = run(goal.clone(), carries(173));
    assert_eq!(outcome, Outcome::Bisected { rate: 173, tried: true });
    let rates: Vec<u64> = trials.iter().map(|trial| trial.rate).collect();
    assert_eq!(rates, [225, 137, 181, 159, 170, 175, 172, 173, 174]);
    let in_thousands = Goal { low: 50_000, high: 400_999, step: 1_000, ..goal.clone() };
    let (outcome, trials) = run(in_thousands, carries(173_500));
    assert_eq!(outcome, Outcome::Bisected { rate: 173_000, tried: true });
    assert_eq!(trials[0].rate, 225_000);
    let (outcome, _) = run(Goal { low: 100, high: 200, ..goal }, carries(50));
    assert_eq!(outcome, Outcome::Bisected { rate: 100, tried: false });
}

/// A hunt over a server whose share of slow requests grows with the rate, and is the limit at `knee`: how often each
/// rate was tried, and what was found.
fn hunt_of_requests(knee: f64, seed: u64) -> (Outcome, Vec<u64>) {
    let latencies = vec![LatencyLimit { percentile: 99.0, bound_ns: 1_000_000 }];
    let mut goal = goal(100, 100_000, 0.001);
    goal.limits.latencies = latencies;
    let (mut hunt, mut rates, mut state) = (Hunt::new(goal), Vec::new(), seed);
    let mut chance = || (crate::random::next_word(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
    while let Step::Run(trial) = hunt.poll_step() {
        let items = (trial.rate as f64 * trial.longest_ns as f64 / 1e9) as u64;
        let share = (0.01 * (trial.rate as f64 / knee).powi(8)).min(1.0);
        // Enough of them for a sum of chances to be normal.
        let expected = items as f64 * share;
        let normal = (0..12).map(|_| chance()).sum::<f64>() - 6.0;
        let slow = (expected + normal * expected.sqrt()).clamp(0.0, items as f64) as u64;
        let bad = vec![Bad::default(), Bad::one_event(slow)];
        let seen = Seen { arrived_items: items, bad, ..Seen::default() };
        let verdict = hunt.weigh(TrialVerdict::Pass, &seen);
        rates.push(trial.rate);
        let arrived = (trial.rate as f64).min(knee * 1.05) as u64;
        hunt.handle_verdict(verdict, trial.rate, arrived);
    }
    let Step::Done(outcome) = hunt.poll_step() else { panic!() };
    (outcome, rates)
}

#[test]
fn requests_near_a_limit_are_tried_until_it_is_certain() {
    let mut right = 0;
    for seed in 1..=60 {
        let (outcome, rates) = hunt_of_requests(20_000.0, seed);
        // Where the share is 1 % at 20,000/s, it is 1.08 % at 1 % more.
        let known = match outcome {
            Outcome::Found { rate, failing_rate } => Some((rate + failing_rate) / 2),
            Outcome::Unsteady { low, high } => Some((low + high) / 2),
            _ => None,
        };
        right += usize::from(known.is_some_and(|rate| (19_400..=20_600).contains(&rate)));
        assert!(rates.len() <= 150, "{}", rates.len());
        let most = rates.iter().map(|rate| rates.iter().filter(|one| *one == rate).count()).max();
        assert!(most > Some(1), "rates near the limit are tried again: {rates:?}");
    }
    assert!(right >= 57, "{right} of 60");
}

#[test]
fn one_trial_decides_where_no_request_is_slow_or_all_are() {
    let mut goal = goal(7, 7, 0.5);
    goal.limits.latencies = vec![LatencyLimit { percentile: 99.0, bound_ns: 1 }];
    for (slow, outcome) in [(0, Outcome::Keeps { rate: 7 }), (70, Outcome::Breaks { rate: 7 })] {
        let mut hunt = Hunt::new(goal.clone());
        let bad = vec![Bad::default(), Bad::one_event(slow)];
        let seen = Seen { arrived_items: 70, bad, ..Seen::default() };
        let verdict = hunt.weigh(TrialVerdict::Pass, &seen);
        hunt.handle_verdict(verdict, 7, 7);
        assert_eq!(hunt.poll_step(), Step::Done(outcome));
    }
}

#[test]
fn a_hunt_that_is_cut_off_tells_what_is_known() {
    let mut hunt = Hunt::new(goal(1_000, 1_000_000, 0.001));
    assert_eq!(hunt.interrupted(), Outcome::Interrupted { passed: None, failed: None });
    hunt.handle_verdict(FAIL, 1_000_000, 5_000);
    hunt.handle_verdict(TrialVerdict::Pass, 5_000, 5_000);
    let known = Outcome::Interrupted { passed: Some(5_000), failed: Some(1_000_000) };
    assert_eq!(hunt.interrupted(), known);
}
