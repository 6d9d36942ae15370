//! How often warm-ups are found and intervals cover, in simulated series: an autoregressive process about 1.

use super::*;
use crate::Plan;
use crate::comparison::figures_of_run;
use crate::plan::{Direction, Transport, Workload};
use crate::random::{next_normal, next_word};
use crate::run::{Draft, Outcome, exit};
use crate::sample::{Role, Sample, Traffic};
use crate::trust::{ReasonCode, ReasonUnit, Severity};

const INTERVALS: usize = 100;

/// A series whose neighbours have this correlation, about 1 with a standard deviation of 5 %, that rises from 0 over
/// its first `ramp` values.
fn draw(seed: u64, alike: f64, ramp: usize) -> Vec<f64> {
    let mut state = seed;
    let mut wobble = 0.05 * next_normal(&mut state);
    let fresh = 0.05 * (1.0 - alike * alike).sqrt();
    let value = |place: usize| {
        wobble = alike * wobble + fresh * next_normal(&mut state);
        let risen = if place < ramp { place as f64 / ramp as f64 } else { 1.0 };
        risen * (1.0 + wobble)
    };
    (0..INTERVALS).map(value).collect()
}

/// Of 400 series: the mean share that is cut, the mean of the rest less 1, and how many are not steady.
fn found(alike: f64, ramp: usize) -> (f64, f64, usize) {
    let (mut cut, mut bias, mut refused) = (0.0, 0.0, 0);
    for seed in 0..400 {
        let values = draw(seed, alike, ramp);
        match find_warm_up(&values).unwrap() {
            WarmUp::Intervals(count) => {
                cut += count as f64 / INTERVALS as f64;
                bias += mean(&values[count..]) - 1.0;
            }
            WarmUp::NotSteady => refused += 1,
        }
    }
    let steady = (400 - refused) as f64;
    (cut / steady, bias / steady, refused)
}

#[test]
fn a_steady_run_is_seldom_cut() {
    for alike in [0.0, 0.5] {
        let (cut, bias, refused) = found(alike, 0);
        assert!(cut < 0.03 && bias.abs() < 0.01 && refused <= 8, "{alike}: {cut} {bias} {refused}");
    }
}

#[test]
fn a_slow_start_is_cut_off() {
    for (ramp, least) in [(10, 0.08), (30, 0.25)] {
        let (cut, bias, refused) = found(0.5, ramp);
        assert!(bias.abs() < 0.01, "{ramp}: bias {bias}, {refused} refused");
        assert!(
            (least..0.4).contains(&cut) && refused <= 20,
            "{ramp}: {cut} cut, {refused} refused"
        );
    }
}

#[test]
fn a_run_that_rises_for_most_of_its_time_is_not_steady() {
    let (.., refused) = found(0.5, 60);
    assert!(refused >= 320, "{refused} of 400");
}

/// A series that varies by 5 % so many times over.
fn varied(seed: u64, alike: f64, times: f64) -> Vec<f64> {
    draw(seed, alike, 0).iter().map(|value| 1.0 + times * (value - 1.0)).collect()
}

#[test]
fn steady_runs_that_vary_much_are_seldom_told_to_be_unsteady() {
    for (alike, times) in [(0.0, 1.0), (0.5, 1.0), (0.5, 4.0), (0.8, 4.0)] {
        let series: Vec<_> = (0..400).map(|seed| varied(seed, alike, times)).collect();
        let rise = series.iter().filter(|it| find_warm_up(it) == Some(WarmUp::NotSteady)).count();
        let changed = series.iter().filter(|it| find_change(it).is_some()).count();
        assert!(rise + changed <= 4, "{alike} {times}: {rise} rise, {changed} change");
    }
}

#[test]
fn a_rate_that_changes_for_good_is_found_where_it_changes() {
    for (factor, times) in [(0.5, 1.0), (0.5, 2.0), (2.0, 2.0)] {
        let is_found = |seed: &u64| {
            let mut values = varied(*seed, 0.5, times);
            values[60..].iter_mut().for_each(|value| *value *= factor);
            find_change(&values).is_some_and(|place| place.abs_diff(60) <= 4)
        };
        let found = (0..200).filter(is_found).count();
        assert!(found >= 190, "{factor} {times}: {found} of 200");
    }
    assert_eq!(find_change(&[1.0; 100]), None);
    assert_eq!(find_change(&[f64::NAN; 100]), None);
    assert_eq!(find_change(&[1.0; 39]), None);
}

/// A series that varies by 0.1 % at most.
fn quiet(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let share = |word: u64| (word % 2_001) as f64 / 1e6 - 0.001;
    (0..INTERVALS).map(|_| 1.0 + share(next_word(&mut state))).collect()
}

#[test]
fn a_dip_before_the_middle_is_no_rise() {
    for (depth, length) in [(0.05, 1), (0.2, 1), (0.5, 1), (0.05, 5), (0.2, 5), (0.5, 5)] {
        for seed in 0..200 {
            let mut values = quiet(seed);
            values[45..].iter_mut().take(length).for_each(|value| *value *= 1.0 - depth);
            let found = find_warm_up(&values);
            assert!(found != Some(WarmUp::NotSteady), "{depth} for {length}, seed {seed}");
            // What rises where it is turned over falls.
            values.iter_mut().for_each(|value| *value = -*value);
            let found = find_warm_up(&values);
            assert!(found != Some(WarmUp::NotSteady), "{depth} for {length}, seed {seed}, turned");
        }
    }
}

#[test]
fn a_small_drift_is_no_rise() {
    for drift in [0.002, 0.01, 0.02] {
        for seed in 0..200 {
            let drifted = quiet(seed).into_iter().enumerate();
            let drifted = drifted
                .map(|(place, value)| value * (1.0 + drift * place as f64 / INTERVALS as f64));
            let found = find_warm_up(&drifted.collect::<Vec<f64>>());
            assert!(found != Some(WarmUp::NotSteady), "{drift}, seed {seed}");
        }
    }
}

#[test]
fn a_straight_rise_by_a_quarter_is_told() {
    for seed in 0..200 {
        let risen = quiet(seed).into_iter().enumerate();
        let risen = risen.map(|(place, value)| value * (0.75 + 0.25 * place as f64 / 100.0));
        assert_eq!(find_warm_up(&risen.collect::<Vec<f64>>()), Some(WarmUp::NotSteady), "{seed}");
    }
}

#[test]
fn intervals_of_one_run_cover_its_mean() {
    for alike in [0.0, 0.5] {
        let covers = |seed: &u64| {
            let values = draw(*seed, alike, 0);
            (mean(&values) - 1.0).abs() <= half_width(&values).unwrap()
        };
        let covered = (0..1_000).filter(covers).count();
        assert!((920..=970).contains(&covered), "{alike}: {covered} of 1000");
    }
}

#[test]
fn short_and_constant_series_are_no_panic() {
    assert_eq!((find_warm_up(&[1.0; 39]), half_width(&[]), half_width(&[1.0])), (None, None, None));
    assert_eq!(find_warm_up(&[1.0; 40]), Some(WarmUp::Intervals(0)));
    assert_eq!(half_width(&[1.0; 40]), Some(0.0));
    assert_eq!(find_warm_up(&[f64::NAN; 40]), Some(WarmUp::Intervals(0)));
    let rising: Vec<f64> = (0..40).map(f64::from).collect();
    assert_eq!(find_warm_up(&rising), Some(WarmUp::NotSteady));
}

/// Samples of one end: these bytes received in each tenth of a second, and a last one that is cut off.
fn samples(role: Role, bytes: &[u64]) -> Vec<Sample> {
    let received = |bytes: u64| Some(Traffic { bytes, calls: None });
    let length_ns = 100_000_000;
    let mut all: Vec<Sample> = (0..)
        .zip(bytes)
        .map(|(place, bytes)| Sample {
            index: place as u32,
            from_ns: place * length_ns,
            to_ns: (place + 1) * length_ns,
            received: received(*bytes),
            transactions: Some(bytes / 100),
            ..Sample::nothing(role)
        })
        .collect();
    let end = bytes.len() as u64 * length_ns;
    all.push(Sample {
        from_ns: end,
        to_ns: end + 1_000,
        received: received(0),
        transactions: Some(0),
        ..Sample::nothing(role)
    });
    all
}

#[test]
fn a_warm_up_of_one_direction_changes_no_figure_of_both() {
    let bytes: Vec<u64> =
        (0..60).map(|place| if place < 5 { 0 } else { 10_000 + place % 2 * 2_000 }).collect();
    let workload = Workload::stream(Direction::Both, Transport::Tcp);
    let mut draft = Draft::new("1".to_owned(), Plan::new("host", 1, workload));
    draft.plan.local.finds_warm_up = true;
    draft.samples = samples(Role::Server, &bytes);
    let told = |draft: &Draft| {
        let mut run = draft.clone().into_run(Outcome::Complete, 0, None);
        run.summary.goodput_bps = Some(5.0);
        let half = |note: &String| note.starts_with("only one direction has intervals enough");
        (figures_of_run(&run).get("goodput_bps").copied(), run.status.notes.iter().any(half))
    };
    assert_eq!(told(&draft), (Some(5.0), true));
    draft.samples.extend(samples(Role::Client, &bytes));
    let (goodput, half) = told(&draft);
    assert!(goodput.is_some_and(|bps| bps > 1e6) && !half, "{goodput:?}");
}

#[test]
fn a_run_whose_rate_changes_for_good_is_doubtful() {
    let bytes: Vec<u64> = (0..80)
        .map(|place| if place < 48 { 20_000 + place % 2 * 500 } else { 10_000 + place % 2 * 500 })
        .collect();
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    let mut draft = Draft::new("1".to_owned(), Plan::new("host", 1, workload));
    draft.samples = samples(Role::Server, &bytes);
    let run = draft.clone().into_run(Outcome::Complete, 0, None);
    let change = run.steadiness[0].change.unwrap();
    assert_eq!(change.at_ns, 4_800_000_000);
    assert!(change.before > 1.9 * change.after, "{change:?}");
    let reasons = &run.status.reasons;
    assert!(reasons.iter().any(|reason| reason.code == ReasonCode::NotSteady), "{reasons:?}");
    draft.samples = samples(Role::Server, &bytes[..40]);
    let run = draft.into_run(Outcome::Complete, 0, None);
    assert_eq!(run.steadiness[0].change, None);
    assert!(run.status.reasons.iter().all(|reason| reason.code != ReasonCode::NotSteady));
}

#[test]
fn a_receiver_that_waits_after_the_sender_has_ended_is_steady_and_one_in_an_outage_is_not() {
    let bytes: Vec<u64> =
        (0..80).map(|place| if place < 65 { 20_000 + place % 2 * 500 } else { 0 }).collect();
    let workload = Workload::stream(Direction::Up, Transport::Udp);
    let change = |sent: &[u64]| {
        let both = [samples(Role::Client, sent), samples(Role::Server, &bytes)].concat();
        let found = steadiness(&workload, &both);
        (found[0].change.is_some(), found[0].intervals)
    };
    // The sender was stopped when it had sent for 6.5 s, then for 8 s.
    assert_eq!(change(&[20_000; 65]), (false, 65));
    assert_eq!(change(&[20_000; 80]), (true, 80));
}

#[test]
fn a_warm_up_that_was_asked_for_takes_intervals_enough() {
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    let mut draft = Draft::new("1".to_owned(), Plan::new("host", 1, workload));
    draft.samples = samples(Role::Server, &[10_000; LEAST_INTERVALS - 1]);
    let few = |draft: &Draft| {
        let run = draft.clone().into_run(Outcome::Interrupted, exit::INTERRUPTED, None);
        let reason = run.status.reasons.into_iter().find(|one| one.code == ReasonCode::Few)?;
        assert_eq!(reason.severity, Severity::Doubtful);
        Some((reason.value?, reason.limit?, reason.unit?))
    };
    assert_eq!(few(&draft), None, "nothing was asked for");
    draft.plan.local.finds_warm_up = true;
    assert_eq!(few(&draft), Some((39.0, 40.0, ReasonUnit::Count)));
    draft.samples = samples(Role::Server, &[10_000; LEAST_INTERVALS]);
    assert_eq!(few(&draft), None);
}

#[test]
fn an_interval_in_which_nothing_arrived_has_a_rate_of_0() {
    let mut server = samples(Role::Server, &[10_000; 60]);
    server[50].received = None;
    let up = Workload::stream(Direction::Up, Transport::Tcp);
    let found = steadiness(&up, &server);
    assert_eq!((found[0].intervals, found[0].warm_up_ns), (60, Some(0)));
    assert!((found[0].rate / (800_000.0 * 59.0 / 60.0) - 1.0).abs() < 1e-9, "{found:?}");
    // Samples that never have what is counted tell nothing of it.
    server.iter_mut().for_each(|sample| sample.received = None);
    assert_eq!(steadiness(&up, &server), []);
}

#[test]
fn times_that_no_clock_has_add_up_to_the_most() {
    let bytes: Vec<u64> =
        (0..60).map(|place| if place < 5 { 0 } else { 10_000 + place % 2 * 2_000 }).collect();
    let mut server = samples(Role::Server, &bytes);
    for sample in &mut server {
        (sample.from_ns, sample.to_ns) = (0, u64::MAX / 2);
    }
    let found = steadiness(&Workload::stream(Direction::Up, Transport::Tcp), &server);
    assert_eq!(found[0].warm_up_ns, Some(u64::MAX));
}

#[test]
fn the_rate_of_a_run_leaves_the_warm_up_out() {
    // Half a second without anything, then 10 or 12 kB in turns.
    let bytes: Vec<u64> =
        (0..60).map(|place| if place < 5 { 0 } else { 10_000 + place % 2 * 2_000 }).collect();
    let server = samples(Role::Server, &bytes);
    let up = Workload::stream(Direction::Up, Transport::Tcp);
    let found = steadiness(&up, &server);
    let one = &found[0];
    assert_eq!((one.name.as_str(), one.direction), ("goodput_bps", Some(Direction::Up)));
    assert_eq!((one.intervals, one.warm_up_ns), (60, Some(500_000_000)));
    assert!((one.rate / 880_000.0 - 1.0).abs() < 0.01, "{one:?}");
    assert!(one.varied_by.is_some_and(|share| (0.001..0.1).contains(&share)), "{one:?}");
    assert_eq!(steadiness(&Workload::stream(Direction::Down, Transport::Tcp), &server), []);
    assert_eq!(steadiness(&up, &samples(Role::Server, &bytes[..39])), []);
    let client = samples(Role::Client, &bytes);
    let both = [server, client].concat();
    assert_eq!(steadiness(&Workload::stream(Direction::Both, Transport::Tcp), &both).len(), 2);
    let rr = steadiness(&Workload::rr(Transport::Tcp), &both);
    assert_eq!((rr[0].name.as_str(), rr[0].direction), ("transactions_per_s", None));
}
