//! How often intervals over runs hold the true mean, in simulated series, and what documents say.

use super::*;
use crate::comparison::Trust;
use crate::random::{next_normal, next_word};
use crate::run::exit;
use crate::trust::ReasonCode;

const GOODPUT: &str = "goodput_bps";

fn figures(value: f64) -> Figures {
    Figures::from([(GOODPUT.to_owned(), value)])
}

/// A run that varies by 5 %, of which one in ten loses a tenth.
fn draw_run(state: &mut u64) -> f64 {
    let is_spoiled = next_word(state).is_multiple_of(10);
    (if is_spoiled { 0.9 } else { 1.0 }) + 0.05 * next_normal(state)
}

/// The mean of all runs that [`draw_run`] draws.
const TRUE_MEAN: f64 = 0.99;

fn covers(runs: &[Figures]) -> bool {
    let spread = FigureSpread::of(GOODPUT, runs).unwrap();
    spread.low.unwrap() <= TRUE_MEAN && TRUE_MEAN <= spread.high.unwrap()
}

#[test]
fn intervals_of_8_runs_cover_the_mean_in_95_of_100_series() {
    for runs in [3, 8, 30] {
        let experiment = |seed: u64| {
            let mut state = seed;
            covers(&(0..runs).map(|_| figures(draw_run(&mut state))).collect::<Vec<_>>())
        };
        let covered = (0..2_000).filter(|seed| experiment(*seed)).count();
        assert!((1_840..=1_940).contains(&covered), "{runs} runs: {covered} of 2000");
    }
}

#[test]
fn series_that_end_at_a_precision_cover_the_mean_and_come_to_an_end() {
    let asked = Asked { most_runs: 60, precision: Some(0.02) };
    let (mut covered, mut converged, mut made) = (0, 0, 0);
    for seed in 0..1_000_u64 {
        let (mut state, mut runs) = (seed, Vec::new());
        while asked.wants_another(&runs) {
            runs.push(figures(draw_run(&mut state)));
        }
        assert!((LEAST_WITH_PRECISION..=60).contains(&runs.len()));
        (covered, converged) = (
            covered + usize::from(covers(&runs)),
            converged + usize::from(asked.is_reached(&runs)),
        );
        made += runs.len();
    }
    assert!((920..=970).contains(&covered), "{covered} of 1000");
    assert!(converged >= 950, "{converged} of 1000, {made} runs");
    assert!((20_000..50_000).contains(&made), "{made} runs");
}

#[test]
fn a_precision_is_never_reached_before_8_runs() {
    let asked = Asked { most_runs: 20, precision: Some(0.02) };
    let equal = |count: usize| vec![figures(5.0); count];
    assert!(asked.wants_another(&equal(7)) && !asked.wants_another(&equal(8)));
    let without = Asked { precision: None, ..asked };
    assert!(without.wants_another(&equal(19)) && !without.wants_another(&equal(20)));
    let (few, none) = (Asked { most_runs: 3, ..asked }, vec![Figures::new(); 30]);
    assert!(!few.wants_another(&equal(3)) && !few.is_reached(&equal(3)));
    assert!(!Asked { most_runs: 40, ..asked }.is_reached(&none));
    assert!(!asked.is_reached(&vec![figures(0.0); 9]), "a share of 0 is no precision");
}

#[test]
fn a_spread_has_an_interval_from_3_runs_on() {
    let runs = [figures(9.0), figures(11.0), figures(10.0), Figures::new(), figures(f64::NAN)];
    let spread = FigureSpread::of(GOODPUT, &runs).unwrap();
    assert_eq!((spread.runs, spread.median, spread.mean), (3, 10.0, 10.0));
    assert_eq!((spread.least, spread.greatest), (9.0, 11.0));
    assert!((spread.relative_half_width().unwrap() - 0.4303 / 3.0_f64.sqrt()).abs() < 1e-9);
    let two = FigureSpread::of(GOODPUT, &runs[..2]).unwrap();
    assert_eq!((two.low, two.high, two.relative_half_width()), (None, None, None));
    assert_eq!(FigureSpread::of("latency_p50_ns", &runs), None);
    assert_eq!((spreads_of(&runs), spreads_of(&[])), (vec![spread], vec![]));
}

/// The sentences of a series' reasons.
fn texts(series: &Repeats) -> Vec<&str> {
    series.status.reasons.iter().map(|reason| reason.text.as_str()).collect()
}

/// Their codes, with values and limits.
fn codes(series: &Repeats) -> Vec<(ReasonCode, Option<f64>, Option<f64>)> {
    series.status.reasons.iter().map(|reason| (reason.code, reason.value, reason.limit)).collect()
}

fn run(value: f64, exit_code: u8) -> RepeatedRun {
    let figures = if value > 0.0 { figures(value) } else { Figures::new() };
    let message = (exit_code != exit::VALID).then(|| "the client stood still".to_owned());
    RepeatedRun { run_id: format!("{value}"), exit_code, verdict: None, figures, message }
}

#[test]
fn the_document_says_how_it_ended_and_how_far_it_can_be_trusted() {
    let plain = Asked { most_runs: 4, precision: None };
    let of = |asked: &Asked, runs: Vec<RepeatedRun>| Repeats::of(asked, runs);
    let ended = |one: &Repeats| (one.status.outcome, one.status.verdict, one.status.exit_code);
    let good = || run(10.0, exit::VALID);
    let whole = of(&plain, vec![good(), good(), good(), good()]);
    assert_eq!(ended(&whole), (Ending::Complete, Trust::Valid, exit::VALID));
    assert!(whole.drift.is_some() && whole.precision.is_none() && whole.metrics.len() == 1);
    let text = serde_json::to_string(&whole).unwrap();
    assert_eq!(serde_json::from_str::<Repeats>(&text).unwrap(), whole);
    let untrusted = of(&plain, vec![good(), good(), good(), run(9.0, exit::UNTRUSTWORTHY)]);
    assert_eq!(ended(&untrusted), (Ending::Complete, Trust::Doubtful, exit::UNTRUSTWORTHY));
    assert_eq!(
        texts(&untrusted),
        ["1 of 4 runs are not to be trusted, the first: the client stood still"]
    );
    let mut doubtful = good();
    doubtful.verdict = Some(Trust::Doubtful);
    let mut series = of(&plain, vec![good(), good(), good(), doubtful]);
    assert_eq!(ended(&series), (Ending::Complete, Trust::Doubtful, exit::VALID));
    assert_eq!(texts(&series), ["1 of 4 runs are doubtful, the first: see its notes"]);
    series.status.be_strict();
    assert_eq!(series.status.exit_code, exit::UNTRUSTWORTHY);
    let mut strict = run(10.0, exit::UNTRUSTWORTHY);
    strict.verdict = Some(Trust::Doubtful);
    let series = of(&plain, vec![good(), good(), good(), strict]);
    let told = "1 of 4 runs are doubtful, the first: the client stood still";
    assert_eq!((series.status.exit_code, texts(&series)), (6, vec![told]));
    assert_eq!(codes(&series), [(ReasonCode::DoubtfulRuns, Some(1.0), Some(0.0))]);
    let cut = of(&plain, vec![good(), run(0.0, exit::INTERRUPTED)]);
    assert_eq!(ended(&cut), (Ending::Interrupted, Trust::Doubtful, exit::INTERRUPTED));
    assert_eq!(texts(&cut), ["1 of 4 runs were measured", "fewer than 3 runs have no interval"]);
    let few = |count, least: usize| (ReasonCode::Few, Some(count), Some(least as f64));
    assert_eq!(codes(&cut), [few(1.0, 4), few(1.0, LEAST_WITH_INTERVAL)]);
    // Two runs that were asked for have no interval either.
    let pair = of(&Asked { most_runs: 2, ..plain }, vec![good(), good()]);
    assert_eq!(ended(&pair), (Ending::Complete, Trust::Doubtful, exit::VALID));
    assert_eq!(codes(&pair), [few(2.0, LEAST_WITH_INTERVAL)]);
    let three = of(&Asked { most_runs: 3, ..plain }, vec![good(), good(), good()]);
    assert_eq!(ended(&three), (Ending::Complete, Trust::Valid, exit::VALID));
    // The user stopped it between two runs.
    let between = of(&plain, vec![good(), good(), good()]);
    assert_eq!(ended(&between), (Ending::Interrupted, Trust::Doubtful, exit::INTERRUPTED));
    let failed = of(&plain, vec![run(0.0, exit::UNREACHABLE)]);
    assert_eq!(ended(&failed), (Ending::Failed, Trust::Invalid, exit::UNREACHABLE));
    assert_eq!(texts(&failed)[0], "no figure was measured");
    assert!(codes(&failed).iter().any(|(code, ..)| *code == ReasonCode::RunFailed));
}

#[test]
fn a_precision_that_is_not_reached_is_told_with_its_width() {
    let asked = Asked { most_runs: 8, precision: Some(0.02) };
    let runs = |odd: f64| -> Vec<RepeatedRun> {
        (0..8).map(|place| run(if place % 2 == 0 { 10.0 } else { odd }, exit::VALID)).collect()
    };
    let reached = Repeats::of(&asked, runs(10.1));
    assert_eq!((reached.status.outcome, reached.status.verdict), (Ending::Converged, Trust::Valid));
    let wide = Repeats::of(&asked, runs(12.0));
    assert_eq!(
        (wide.status.outcome, wide.status.verdict, wide.status.exit_code),
        (Ending::DidNotConverge, Trust::Doubtful, exit::VALID)
    );
    assert_eq!(
        texts(&wide),
        [
            "did not converge: goodput_bps is known to +- 8.13 % after 8 runs, and 2.00 % were asked for"
        ]
    );
    assert_eq!(codes(&wide)[0].0, ReasonCode::NotConverged);
    assert_eq!(wide.precision.unwrap().name.as_deref(), Some(GOODPUT));
}
