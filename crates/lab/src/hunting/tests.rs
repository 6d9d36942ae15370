use linerate_measure::hunt::{Goal, Limits, Method, Shortfall};
use linerate_measure::run::Draft;
use linerate_measure::sample::DatagramCounts;
use linerate_measure::{Direction, Outcome as RunOutcome, Plan as TestPlan, Role, Transport};

use super::*;
use crate::plan::{Ready, TaskSpec};

const INTERVAL_NS: u64 = 50_000_000;

fn search(method: Method, loss_ratio: f64) -> Search {
    let mut workload = Workload::stream(Direction::Up, Transport::Udp);
    workload.interval_ns = INTERVAL_NS;
    let goal = Goal {
        method,
        unit: RateUnit::BitsPerSecond,
        low: 1_000,
        high: 100_000,
        step: 1,
        per_item: 1,
        limits: Limits { loss_ratio, latencies: Vec::new() },
        trial_ns: 10_000_000_000,
    };
    Search { goal, workload, trial: TaskSpec::new(Vec::new(), Ready::Armed) }
}

fn sample(role: Role, number: u64, datagrams: DatagramCounts) -> Sample {
    let (from_ns, to_ns) = (number * INTERVAL_NS, (number + 1) * INTERVAL_NS);
    Sample { from_ns, to_ns, datagrams: Some(datagrams), ..Sample::nothing(role) }
}

fn run_of(id: &str, received: u64, lost: u64) -> Box<Run> {
    let workload = Workload::stream(Direction::Up, Transport::Udp);
    let draft = Draft::new(id.to_owned(), TestPlan::new("h", 1, workload));
    let mut run = draft.into_run(RunOutcome::Interrupted, 130, None);
    let counts =
        DatagramCounts { received: Some(received), lost: Some(lost), ..Default::default() };
    run.summary.datagrams = Some(counts);
    Box::new(run)
}

/// Makes the trial that runs over paths that carry so much each, and returns its records.
fn make_trial(hunting: &mut Hunting, trial: Trial, capacities: &[u64]) -> Vec<(u32, TrialRecord)> {
    let mut owed = vec![0; capacities.len()];
    let mut number = 0;
    let mut counted = vec![(0, 0); capacities.len()];
    while !hunting.is_decided() && number * INTERVAL_NS < trial.longest_ns {
        for (place, capacity) in capacities.iter().enumerate() {
            // Twentieths of a datagram are carried over.
            owed[place] += trial.rate;
            let sent = owed[place] / 20;
            owed[place] -= sent * 20;
            let lost = sent.saturating_sub(capacity / 20);
            let counts = DatagramCounts { sent: Some(sent), ..Default::default() };
            hunting.handle_sample(place, &sample(Role::Client, number, counts));
            let (received, lost) = (sent - lost, lost);
            let counts = DatagramCounts {
                received: Some(received),
                lost: Some(lost),
                loss_events: Some(lost),
                ..Default::default()
            };
            hunting.handle_sample(place, &sample(Role::Server, number, counts));
            counted[place] = (counted[place].0 + received, counted[place].1 + lost);
        }
        number += 1;
    }
    for (place, (received, lost)) in counted.into_iter().enumerate() {
        let run = run_of(&format!("{place}-{}", trial.number), received, lost);
        hunting.handle_run(place, run, Some(1_000_000 * place as i64));
    }
    hunting.end_trial()
}

fn hunt(search: &Search, capacities: &[u64]) -> Hunting {
    let pairs = (0..capacities.len()).map(|place| (place, place as u32 + 1));
    let mut hunting = Hunting::new(search, pairs);
    while let Some(trial) = hunting.begin_trial() {
        let told = make_trial(&mut hunting, trial, capacities);
        assert_eq!(told.len(), capacities.len());
        assert!(told.iter().all(|(_, record)| record.verdict == told[0].1.verdict));
    }
    hunting
}

#[test]
fn every_pair_has_the_common_outcome_and_its_own_counts() {
    let hunting = hunt(&search(Method::Sequential, 0.001), &[20_000, 40_000, 40_000]);
    let note = hunting.note().unwrap();
    assert!(note.ends_with("pair 1 was the worst"), "{note}");
    let runs = hunting.into_runs();
    assert_eq!(runs.len(), 3);
    let record = |place: usize| runs[place].1.hunt.as_deref().unwrap();
    let rate = record(0).outcome.rate().unwrap();
    assert!((19_900..=20_300).contains(&rate), "{:?}", record(0).outcome);
    for (place, run) in &runs {
        let own = record(*place);
        assert_eq!((own.outcome, own.pairs), (record(0).outcome, Some(3)));
        assert_eq!(run.status.exit_code, 0);
        // The document is the one of the trial that it reports.
        let number = own.reported_trial.unwrap();
        assert_eq!(run.run_id, format!("{place}-{number}"));
        assert_eq!(own.trials[number as usize - 1].rate, rate);
    }
    let lost = |place: usize| record(place).trials.iter().map(|one| one.items.lost).sum::<u64>();
    assert!(lost(0) > lost(1), "{} {}", lost(0), lost(1));
    assert!(record(1).trials.iter().all(|one| one.worst_pair == Some(1)));
}

#[test]
fn the_originals_search_goes_by_exact_counts_of_all_pairs() {
    let runs = hunt(&search(Method::Bisection, 0.0), &[20_000, 30_000]).into_runs();
    let record = runs[1].1.hunt.as_deref().unwrap();
    let outcome = Outcome::Bisected { rate: 20_019, tried: true };
    // 20,019 of 20 datagrams an interval lose nothing at the first pair: its path carries whole datagrams.
    let rate = record.outcome.rate().unwrap();
    assert!(rate.abs_diff(20_000) < 20, "{:?} {outcome:?}", record.outcome);
    let rates: Vec<u64> = record.trials.iter().map(|trial| trial.rate).collect();
    assert_eq!(rates[..3], [50_500, 25_750, 13_375]);
}

#[test]
fn loads_that_began_too_far_apart_invalidate_the_trial() {
    let mut hunting =
        Hunting::new(&search(Method::Sequential, 0.001), [(0, 1), (3, 2)].into_iter());
    let trial = hunting.begin_trial().unwrap();
    assert_eq!(hunting.words(&trial), format!("100000:{}ns", trial.longest_ns));
    hunting.handle_run(0, run_of("a", 10, 0), Some(0));
    hunting.handle_run(3, run_of("b", 10, 0), Some(200_000_001));
    let told = hunting.end_trial();
    let apart = TrialVerdict::Invalid { why: Shortfall::Apart };
    assert_eq!([told[0].1.verdict, told[1].1.verdict], [apart; 2]);
    assert_eq!([told[0].0, told[1].0], [1, 2]);
    let again = hunting.begin_trial().unwrap();
    assert_eq!((again.number, again.rate), (2, trial.rate));
}

#[test]
fn a_hunt_that_is_cut_off_tells_what_is_known() {
    let mut hunting = Hunting::new(&search(Method::Sequential, 0.001), [(0, 1)].into_iter());
    let trial = hunting.begin_trial().unwrap();
    make_trial(&mut hunting, trial, &[20_000]);
    let next = hunting.begin_trial().unwrap();
    assert_ne!(next.rate, trial.rate);
    hunting.handle_run(0, run_of("cut", 10, 0), None);
    let runs = hunting.into_runs();
    let (record, status) = (runs[0].1.hunt.as_deref().unwrap(), &runs[0].1.status);
    assert_eq!(record.outcome, Outcome::Interrupted { passed: None, failed: Some(100_000) });
    assert_eq!((status.outcome, status.exit_code), (RunOutcome::Interrupted, 130));
    assert_eq!(record.trials.len(), 1);
    // Nothing has begun: there is no document.
    let none = Hunting::new(&search(Method::Sequential, 0.001), [(0, 1)].into_iter());
    assert!(none.into_runs().is_empty());
}
