//! How often a comparison is right, in simulated experiments.

use super::*;
use crate::random::{next_normal, next_word};

/// Pairs of runs that vary by 2 %, of which one in 20 loses a third, on a machine that becomes a tenth slower; B's
/// figure is this many times A's.
fn experiment(seed: u64, pairs: usize, ratio: f64) -> Vec<[Figures; 2]> {
    let (mut state, mut runs) = (seed, 0.0);
    let mut run = |state: &mut u64, factor: f64| {
        runs += 1.0;
        let trend = 1.0 - 0.1 * runs / (2 * pairs) as f64;
        let spoiled = if next_word(state).is_multiple_of(20) { 0.67 } else { 1.0 };
        1e9 * factor * trend * spoiled * (0.02 * next_normal(state)).exp()
    };
    let figures = |value: f64| Figures::from([("goodput_bps".to_owned(), value)]);
    let pair = |order: &[Side; 2]| {
        let mut values = [0.0; 2];
        for side in order {
            values[side.index()] = run(&mut state, if *side == Side::B { ratio } else { 1.0 });
        }
        values.map(figures)
    };
    draw_order(seed, pairs).iter().map(pair).collect()
}

fn verdicts(ratio: f64) -> [usize; 3] {
    let mut counts = [0; 3];
    for seed in 0..1_000 {
        let estimates = compare_pairs(&experiment(seed, 15, ratio));
        let place = match estimates[0].verdict {
            Finding::AHigher => 0,
            Finding::BHigher => 1,
            Finding::NoDifferenceSeen | Finding::TooFew => 2,
        };
        counts[place] += 1;
    }
    counts
}

#[test]
fn equal_pairs_seldom_differ() {
    let [a_higher, b_higher, none] = verdicts(1.0);
    assert!(a_higher + b_higher <= 60, "{a_higher} + {b_higher} of 1000, {none} none");
    assert!(a_higher.abs_diff(b_higher) <= 25, "{a_higher} and {b_higher}: one side is preferred");
}

#[test]
fn a_difference_of_5_percent_is_found() {
    let [a_higher, b_higher, none] = verdicts(0.95);
    assert!(a_higher >= 950, "{a_higher} of 1000, {none} none, {b_higher} the wrong way");
}

#[test]
fn quantiles_share_the_error_of_their_latency() {
    let figures = |value: f64| -> Figures {
        ["latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "transactions_per_s"]
            .map(|name| (name.to_owned(), value))
            .into()
    };
    let pairs: Vec<[Figures; 2]> =
        (0..15).map(|number| [figures(100.0), figures(100.0 + f64::from(number))]).collect();
    let estimates = compare_pairs(&pairs);
    assert_eq!(estimates.len(), 4);
    let (rate, p50) = (&estimates[0], &estimates[1]);
    assert_eq!((rate.name.as_str(), rate.confidence), ("transactions_per_s", 0.95));
    assert!((p50.confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-12, "{}", p50.confidence);
    assert!(p50.low < rate.low && p50.high > rate.high, "{p50:?} {rate:?}");
    assert!((rate.ratio - 1.07).abs() < 1e-9 && rate.verdict == Finding::BHigher);
}

/// Stored runs of both sides, which vary by 2 %; B's figures are this many times A's.
fn stored(seed: u64, runs: usize, ratio: f64) -> FigureRatio {
    let mut state = seed;
    let mut side = |factor: f64| -> Vec<Figures> {
        let values = (0..runs).map(|_| 1e9 * factor * (0.02 * next_normal(&mut state)).exp());
        values.map(|value| Figures::from([("goodput_bps".to_owned(), value)])).collect()
    };
    compare_stored(&side(1.0), &side(ratio)).remove(0)
}

#[test]
fn a_difference_that_would_have_been_seen_is_seen_in_90_percent_of_comparisons() {
    let paired = |seed: u64, pairs: usize, ratio: f64| {
        compare_pairs(&experiment(seed, pairs, ratio)).remove(0)
    };
    type Compare<'a> = &'a dyn Fn(u64, usize, f64) -> FigureRatio;
    let ways: [(Compare<'_>, usize); 6] =
        [(&paired, 12), (&paired, 15), (&paired, 30), (&stored, 5), (&stored, 8), (&stored, 20)];
    for (compare, runs) in ways {
        let (mut told, mut seen) = (0, 0);
        for seed in 0..1_500 {
            let equal = compare(seed, runs, 1.0);
            if equal.verdict != Finding::NoDifferenceSeen {
                continue;
            }
            let smallest = equal.smallest_seen.unwrap();
            let other = compare(seed + 1_000_000, runs, 1.0 + smallest);
            told += 1;
            seen += usize::from(other.verdict == Finding::BHigher);
        }
        assert!(seen * 100 >= told * 89, "{runs} runs: {seen} of {told} were seen");
    }
}

#[test]
fn too_few_runs_tell_no_difference_that_would_have_been_seen() {
    assert_eq!(compare_pairs(&experiment(1, 11, 1.0))[0].smallest_seen, None);
    assert!(compare_pairs(&experiment(1, 12, 1.0))[0].smallest_seen.is_some());
    assert_eq!(stored(1, 4, 1.0).smallest_seen, None);
}

#[test]
fn a_figure_counts_in_the_pairs_that_have_it_and_few_pairs_have_no_interval() {
    let figures = |value: f64| Figures::from([("goodput_bps".to_owned(), value)]);
    let mut pairs = vec![[figures(1.0), figures(2.0)]; 5];
    pairs.extend([
        [figures(1.0), Figures::new()],
        [figures(0.0), figures(1.0)],
        [figures(f64::NAN), figures(1.0)],
    ]);
    let estimates = compare_pairs(&pairs);
    assert_eq!(
        (estimates[0].pairs, estimates[0].verdict, estimates[0].low),
        (5, Finding::TooFew, None)
    );
    assert!((estimates[0].ratio - 2.0).abs() < 1e-12);
    assert_eq!(compare_pairs(&[]), []);
}

#[test]
fn stored_runs_are_compared_by_welch() {
    let figures = |value: f64| Figures::from([("goodput_bps".to_owned(), value)]);
    let side =
        |values: &[f64]| -> Vec<Figures> { values.iter().map(|value| figures(*value)).collect() };
    let estimates = compare_stored(&side(&[100.0, 101.0, 99.0]), &side(&[90.0, 91.0, 89.0, 90.0]));
    let one = &estimates[0];
    assert_eq!((one.verdict, one.method, one.pairs), (Finding::AHigher, Method::Welch, 3));
    assert!(
        (one.ratio - 0.9).abs() < 1e-3 && one.low.unwrap() > 0.87 && one.high.unwrap() < 0.93,
        "{one:?}"
    );
    let single = compare_stored(&side(&[100.0]), &side(&[90.0]));
    assert_eq!((single[0].verdict, single[0].low), (Finding::TooFew, None));
    assert_eq!(compare_stored(&side(&[100.0]), &[]), []);
    let equal = compare_stored(&side(&[100.0; 3]), &side(&[100.0; 3]));
    assert_eq!(equal[0].verdict, Finding::TooFew, "no spread, no interval");
}

fn run(side: Side, pair: usize, value: f64) -> ComparedRun {
    let figures = if value > 0.0 {
        Figures::from([("goodput_bps".to_owned(), value)])
    } else {
        Figures::new()
    };
    ComparedRun { side, pair, run_id: None, exit_code: 0, figures, message: None }
}

fn asked(conditions: &[&str]) -> Asked {
    let conditions = conditions.iter().map(|text| Condition::parse(text).unwrap()).collect();
    Asked { commands: ["a".to_owned(), "b".to_owned()], conditions }
}

fn paired(pairs: usize, ratio: f64) -> Vec<ComparedRun> {
    (1..=pairs)
        .flat_map(|pair| [run(Side::A, pair, 1e9), run(Side::B, pair, 1e9 * ratio)])
        .collect()
}

#[test]
fn the_document_says_how_far_it_can_be_trusted() {
    let of = |conditions: &[&str], runs: Vec<ComparedRun>, interrupted: bool| {
        Comparison::of_pairs(&asked(conditions), (7, 8), runs, interrupted)
    };
    let valid = of(&["goodput < -5%"], paired(8, 0.97), false);
    assert_eq!((valid.status.verdict, valid.status.exit_code), (Trust::Valid, 0));
    assert!(
        valid.differs() && valid.conditions[0].holds == Some(false) && valid.complete_pairs() == 8
    );
    assert_eq!(of(&["goodput < -2%"], paired(8, 0.97), false).status.exit_code, 7);
    let mut runs = paired(8, 0.97);
    runs[3].figures.clear();
    runs[4].exit_code = 6;
    runs[4].message = Some("the client stood still".to_owned());
    let doubtful = of(&[], runs, false);
    assert_eq!((doubtful.status.verdict, doubtful.status.exit_code), (Trust::Doubtful, 0));
    assert_eq!(
        doubtful.status.reasons,
        [
            "7 of 8 pairs are complete",
            "1 runs are not to be trusted, the first: the client stood still"
        ]
    );
    let unjudged = of(&["p99 > 3%"], paired(8, 1.0), false);
    assert_eq!((unjudged.status.verdict, unjudged.status.exit_code), (Trust::Doubtful, 6));
    assert_eq!(unjudged.status.reasons, ["p99 > 3% can't be judged: the figure has no interval"]);
    let mut stalled = paired(8, 1.0);
    stalled[0].figures.values_mut().for_each(|value| *value = 0.0);
    stalled[0].figures.insert("another".to_owned(), 1.0);
    let stalled = of(&[], stalled, false);
    assert_eq!(stalled.status.verdict, Trust::Doubtful);
    assert_eq!(stalled.status.reasons, ["goodput_bps is 0 in 1 of 8 pairs, which don't count"]);
    let none = of(&[], vec![run(Side::A, 1, 0.0)], false);
    assert_eq!((none.status.verdict, none.status.exit_code), (Trust::Invalid, 1));
    assert_eq!(of(&[], paired(3, 1.0), true).status.exit_code, 130);
}

#[test]
fn stored_runs_are_always_doubtful() {
    let stored = Comparison::of_stored(&asked(&[]), paired(1, 0.9), Vec::new());
    assert_eq!((stored.status.verdict, stored.status.exit_code), (Trust::Doubtful, 0));
    assert_eq!(stored.status.reasons.len(), 2);
    assert!(stored.status.reasons[0].starts_with("not interleaved"), "{:?}", stored.status.reasons);
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), stored);
}
