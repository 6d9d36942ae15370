use proptest::prelude::*;

use super::*;
use crate::limits::tests::{finished, transfer};
use crate::plan::Transport;
use crate::random::next_word;
use crate::report::FlowReport;
use crate::run::Draft;
use crate::sample::TcpStatus;

/// The sum that the beta function stands for: P(B <= k) of n trials with probability p.
fn at_most(k: u64, n: u64, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(i32::try_from(n).unwrap());
    let mut sum = term;
    for place in 1..=k {
        term *= (n - place + 1) as f64 / place as f64 * p / (1.0 - p);
        sum += term;
    }
    sum
}

#[test]
fn counts_are_tested_exactly() {
    for (sent, sent_other) in [(3000_u32, 3000_u32), (9000, 3000), (1000, 5000)] {
        let (sent_real, other_real) = (f64::from(sent), f64::from(sent_other));
        let p = other_real / (3.0 * sent_real + other_real);
        for lost in 1..60 {
            for lost_other in 0..60 {
                let all = lost + lost_other;
                let fewer = if lost_other == 0 { 0.0 } else { at_most(lost_other - 1, all, p) };
                let expected = match () {
                    () if 1.0 - fewer < SIGNIFICANCE => Change::Stayed,
                    () if at_most(lost_other, all, p) < SIGNIFICANCE => Change::Vanished,
                    () => Change::NotTold,
                };
                let told = change((lost, u64::from(sent)), (lost_other, u64::from(sent_other)));
                assert_eq!(told, expected, "{lost} of {sent}, {lost_other} of {sent_other}");
            }
        }
    }
}

#[test]
fn few_losses_tell_nothing() {
    assert_eq!(change((40, 4000), (0, 4000)), Change::Vanished);
    assert_eq!(change((40, 4000), (0, 1000)), Change::NotTold);
    assert_eq!(change((3, 4000), (0, 40_000)), Change::NotTold);
    assert_eq!(change((40, 4000), (14, 4000)), Change::NotTold);
    assert_eq!(change((40, 4000), (40, 4000)), Change::Stayed);
    assert_eq!(change((0, 4000), (40, 4000)), Change::NotTold);
    assert_eq!(change((40, 4000), (40, 0)), Change::NotTold);
    // Counts of which the sum is scaled.
    assert_eq!(change((4_000_000, 400_000_000), (4_000_000, 400_000_000)), Change::Stayed);
    assert_eq!(change((4_000_000, 400_000_000), (400_000, 400_000_000)), Change::Vanished);
}

fn run(paced_bps: Option<f64>, goodput_bps: f64, (lost, sent): (u64, u64)) -> LossRun {
    LossRun {
        run_id: "1".to_owned(),
        paced_bps,
        goodput_bps,
        elapsed_s: 10.0,
        sent_segments: sent,
        retransmitted_segments: lost,
        lost_ratio: lost as f64 / sent as f64,
    }
}

/// The verdict of runs at 10, 5 and 9.25 Mbit/s with these losses.
fn verdict(counts: [(u64, u64); 3]) -> LossVerdict {
    let [first, half, nearly] = counts;
    let runs =
        vec![run(None, 10e6, first), run(Some(5e6), 5e6, half), run(Some(9.25e6), 9.2e6, nearly)];
    explain(runs).verdict
}

#[test]
fn two_paced_runs_tell_what_losses_depend_on() {
    let first = (90, 9000);
    for (half, nearly, told) in [
        ((45, 4500), (80, 8300), LossVerdict::RandomLoss),
        ((45, 4500), (30, 8300), LossVerdict::RandomLoss),
        ((45, 4500), (0, 8300), LossVerdict::NotTold),
        ((0, 4500), (0, 8300), LossVerdict::ShallowBuffer),
        ((1, 4500), (4, 8300), LossVerdict::ShallowBuffer),
        ((0, 4500), (80, 8300), LossVerdict::RateLimit),
        ((0, 4500), (30, 8300), LossVerdict::ShallowBufferOrRateLimit),
        ((15, 4500), (80, 8300), LossVerdict::NotTold),
        ((0, 450), (0, 830), LossVerdict::NotTold),
    ] {
        assert_eq!(verdict([first, half, nearly]), told, "{half:?}, {nearly:?}");
    }
    // A run that didn't carry its rate says nothing of that rate.
    let slow = vec![
        run(None, 10e6, first),
        run(Some(5e6), 5e6, (0, 4500)),
        run(Some(9.25e6), 6e6, (0, 8300)),
    ];
    assert_eq!(explain(slow).verdict, LossVerdict::ShallowBufferOrRateLimit);
}

/// How many of so many segments are lost at random.
fn lost(state: &mut u64, sent: u64, ratio: f64) -> (u64, u64) {
    let (mut at, mut lost) = (0.0, 0);
    loop {
        let unit = ((next_word(state) >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        at += (unit.ln() / (1.0 - ratio).ln()).floor() + 1.0;
        if at > sent as f64 {
            return (lost, sent);
        }
        lost += 1;
    }
}

#[test]
fn drawn_losses_are_told_right() {
    let mut state = 11;
    let mut unit = || (next_word(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
    let drawn: Vec<(f64, f64, u64)> =
        (0..1000).map(|_| (unit(), unit(), (unit() * 1e15) as u64)).collect();
    let (mut right, mut wrong, mut all) = ([0; 3], 0, 0);
    for (one, other, mut seed) in drawn {
        // 0.2 to 4 % of loss, and as many segments as lose 60 in the run at half of the rate.
        let ratio = 0.002 * 20_f64.powf(one);
        let half = (LOSSES_WANTED / ratio) as u64;
        let (whole, nearly) = (half * 2, half * 2);
        let left = ratio * 0.04 * other;
        let cases = [
            ([ratio, ratio, ratio], LossVerdict::RandomLoss),
            ([ratio, left, left], LossVerdict::ShallowBuffer),
            ([ratio, left, ratio], LossVerdict::RateLimit),
        ];
        for (place, (ratios, truth)) in cases.into_iter().enumerate() {
            let sent = [whole, half, nearly];
            let counts = [0, 1, 2].map(|run| lost(&mut seed, sent[run], ratios[run]));
            let told = verdict(counts);
            right[place] += u32::from(told == truth);
            let is_open =
                [LossVerdict::NotTold, LossVerdict::ShallowBufferOrRateLimit].contains(&told);
            wrong += u32::from(told != truth && !is_open);
        }
        all += 1;
    }
    assert!(right.iter().all(|right| *right >= all * 95 / 100), "{right:?} of {all}");
    assert!(wrong <= all * 3 / 100, "{wrong} of {}", 3 * all);
}

proptest! {
    #[test]
    fn any_counts_have_a_change(
        first in (any::<u64>(), any::<u64>()),
        other in (any::<u64>(), any::<u64>()),
        shift in 0_u32..64,
    ) {
        let shifted = |(lost, sent): (u64, u64)| (lost >> shift, sent >> (shift / 2));
        let (first, other) = (shifted(first), shifted(other));
        let told = change(first, other);
        // Losses that stay stay with more of them, and those that vanish vanish with fewer.
        if told == Change::Stayed && other.0 < u64::MAX >> 2 {
            prop_assert_eq!(change(first, (other.0 * 2, other.1)), Change::Stayed);
        }
        if told == Change::Vanished {
            prop_assert_eq!(change(first, (other.0 / 2, other.1)), Change::Vanished);
        }
    }

    #[test]
    fn paced_runs_last_from_two_seconds_to_ten_or_the_first_ones_time(
        lost in 0_u64..1 << 40, elapsed_s in 1e-9_f64..1e6, share in 0.1_f64..1.0,
    ) {
        let first = LossRun { elapsed_s, ..run(None, 1e6, (lost, 1 << 40)) };
        let time_ns = paced_time_ns(&first, share) as f64;
        prop_assert!((2e9..=elapsed_s.max(10.0) * 1e9 + 1.0).contains(&time_ns), "{}", time_ns);
    }
}

/// A transfer of 10 s at 100 Mbit/s with so many segments of 1250 bytes sent again.
fn transferred(again: u32, change: impl FnOnce(&mut TcpStatus)) -> Draft {
    let mut draft = transfer(Transport::Tcp, 10);
    let mut tcp = TcpStatus {
        rtt_us: 10_000,
        min_rtt_us: Some(9_900),
        mss_bytes: 1250,
        busy_us: Some(10_000_000),
        rwnd_limited_us: Some(0),
        sndbuf_limited_us: Some(0),
        notsent_bytes: Some(400_000),
        retransmitted_segments: again,
        ..TcpStatus::default()
    };
    change(&mut tcp);
    let flows: &mut Vec<FlowReport> = &mut draft.client.as_mut().unwrap().flows;
    flows[0].tcp = Some(tcp);
    draft
}

/// The run that a plan of an inquiry asked for, as it would be with so many segments sent again.
fn answer(plan: Plan, again: u32) -> Run {
    let mut draft = transferred(again, |_| {});
    draft.plan = plan;
    finished(draft)
}

#[test]
fn an_inquiry_asks_for_a_run_at_half_of_the_rate_and_one_just_below_it() {
    let mut inquiry = Inquiry::of(&finished(transferred(1000, |_| {})));
    let half = inquiry.next_plan().unwrap();
    assert_eq!(half.workload.rate, Some(Rate::AllFlows { bps: 50_000_000 }));
    // 50 segments a second would be lost at half of the rate.
    assert_eq!(half.workload.end, End::Time { duration_ns: 2_000_000_000 });
    assert!(half.check().is_ok());
    inquiry.handle_run(&answer(half, 1000));
    let nearly = inquiry.next_plan().unwrap();
    assert_eq!(nearly.workload.rate, Some(Rate::AllFlows { bps: 92_500_000 }));
    inquiry.handle_run(&answer(nearly, 1000));
    assert_eq!(inquiry.next_plan(), None);
    let told = inquiry.explanation();
    assert_eq!(told.verdict, LossVerdict::RandomLoss);
    assert_eq!(
        told.sentence,
        "random loss: slower senders lose the same share (1.00 % of the segments were sent again at \
         100 Mbit/s, 1.00 % paced at 50.0 Mbit/s, 1.00 % paced at 92.5 Mbit/s)"
    );
    let read: Explanation = serde_json::from_str(&serde_json::to_string(&told).unwrap()).unwrap();
    assert_eq!(read, told);
    let rates: Vec<Option<f64>> = told.runs.iter().map(|run| run.paced_bps).collect();
    assert_eq!(rates, [None, Some(50e6), Some(92.5e6)]);
}

#[test]
fn few_losses_make_paced_runs_longer() {
    let inquiry = Inquiry::of(&finished(transferred(200, |_| {})));
    let half = inquiry.next_plan().unwrap();
    assert_eq!(half.workload.end, End::Time { duration_ns: 6_000_000_000 });
}

#[test]
fn another_limit_needs_no_further_run() {
    let window = |tcp: &mut TcpStatus| tcp.rwnd_limited_us = Some(9_000_000);
    let inquiry = Inquiry::of(&finished(transferred(1000, window)));
    assert_eq!(inquiry.next_plan(), None);
    let told = inquiry.explanation();
    assert_eq!(told.verdict, LossVerdict::NotNeeded);
    let sentence =
        "no further run is needed: the limit was the server's receive window, not losses";
    assert_eq!(told.sentence, sentence);
}

#[test]
fn a_run_that_fails_ends_an_inquiry_and_says_why() {
    let first = transferred(1000, |_| {});
    let mut inquiry = Inquiry::of(&finished(first.clone()));
    let failed = first.clone().into_run(Outcome::Failed, 3, Some("no server".to_owned()));
    let plan = inquiry.next_plan().unwrap();
    inquiry.handle_run(&Run { plan, ..failed });
    assert_eq!(inquiry.next_plan(), None);
    let told = inquiry.explanation();
    assert_eq!((told.verdict, told.runs.len()), (LossVerdict::NotTold, 1));
    let why = "the losses can't be explained: the run paced at 50.0 Mbit/s failed: no server";
    assert_eq!(told.sentence, why);

    let cut_off = Inquiry::of(&first.into_run(Outcome::Interrupted, 130, None));
    assert_eq!((cut_off.next_plan(), cut_off.explanation().verdict), (None, LossVerdict::NotTold));
    let nothing = transfer(Transport::Tcp, 1).into_run(Outcome::Failed, 3, None);
    assert_eq!(Inquiry::of(&nothing).explanation().verdict, LossVerdict::NotTold);
}
