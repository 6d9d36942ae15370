//! A hunt as text: what is sought, the trials one by one, and what was found.

use linerate_measure::hunt::{
    Breach, Goal, HuntRecord, HuntTime, Method, Outcome, Purpose, RateUnit, Shortfall, TrialRecord,
    TrialVerdict,
};
use linerate_measure::units::{render_count, render_duration_ns, render_rate};

use super::Style;

/// What a hunt looks for, and how long that takes.
pub(crate) fn render_hunt_begin(goal: &Goal, estimate: HuntTime) -> String {
    let rates = match goal.is_one_rate() {
        true => format!("whether {} keeps", render_rate_of(goal, goal.high)),
        false => format!(
            "the highest rate from {} to {} with",
            render_rate_of(goal, goal.low),
            render_rate_of(goal, goal.high)
        ),
    };
    let seconds = |ns: u64| render_duration_ns(ns.next_multiple_of(1_000_000_000));
    let (shortest, longest) = (seconds(estimate.shortest_ns), seconds(estimate.longest_ns));
    let time = match shortest == longest {
        true => shortest,
        false => format!("{shortest} if it is near the highest, up to {longest} near the lowest"),
    };
    let mut text = format!("linerate: {rates} {}\n", render_limits(goal));
    text.push_str(&format!("linerate: expected time: {time}\n"));
    text
}

fn render_limits(goal: &Goal) -> String {
    let lost = match goal.unit {
        RateUnit::BitsPerSecond => "loss",
        RateUnit::RequestsPerSecond => "failed requests",
    };
    let mut limits = vec![format!("at most {} {lost}", render_percent(goal.limits.loss_ratio))];
    for limit in &goal.limits.latencies {
        let bound = render_duration_ns(limit.bound_ns);
        limits.push(format!("p{} of latency at most {bound}", limit.percentile));
    }
    limits.join(", ")
}

/// The head of the table of trials.
pub(crate) fn render_trial_head(style: Style) -> String {
    let head = format!(
        "{:>5}  {:>11}  {:>11}  {:>11}  {:<7}  {}\n",
        "trial", "rate", "sent", "arrived", "verdict", "why"
    );
    style.bold(head.trim_end()) + "\n"
}

/// A trial as a row.
pub(crate) fn render_trial(goal: &Goal, trial: &TrialRecord, style: Style) -> String {
    let rate = |rate| render_rate_of(goal, rate);
    let verdict = match trial.verdict {
        TrialVerdict::Pass => "pass".to_owned(),
        TrialVerdict::Fail { .. } => "fail".to_owned(),
        TrialVerdict::Invalid { .. } => style.warning("invalid"),
    };
    format!(
        "{:>5}  {:>11}  {:>11}  {:>11}  {verdict:<7}  {}\n",
        trial.number,
        rate(trial.rate),
        rate(trial.offered),
        rate(trial.arrived),
        render_why(goal, trial)
    )
}

fn render_why(goal: &Goal, trial: &TrialRecord) -> String {
    let items = &trial.items;
    let all = (items.arrived + items.lost).max(1);
    let loss = format!("{} lost", render_percent(items.lost as f64 / all as f64));
    let slow = || {
        let shares = items.slow.iter().map(|slow| *slow as f64 / items.arrived.max(1) as f64);
        shares.map(|share| format!("{} slow", render_percent(share))).collect::<Vec<_>>().join(", ")
    };
    let growth = trial.queue_growth_ratio.unwrap_or(0.0);
    let why = match trial.verdict {
        TrialVerdict::Fail { why: Breach::Queue } => {
            format!("a queue grew, {}", render_percent(growth))
        }
        TrialVerdict::Fail { why: Breach::Nothing } => "nothing arrived".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Offered } => "sender fell short".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Uneven } => "sender was uneven".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Short } => "ended early".to_owned(),
        _ if !goal.limits.latencies.is_empty() => slow(),
        // Not the path's fault.
        _ if items.dropped_by_socket.unwrap_or(0) * 2 > items.lost.max(1) => {
            format!("{loss}, in a full socket")
        }
        _ => loss,
    };
    let purpose = if trial.purpose == Purpose::Confirm { ", long" } else { "" };
    format!("{why}{purpose}")
}

/// What was found, in sentences.
pub(crate) fn render_outcome(record: &HuntRecord) -> String {
    let goal = &record.goal;
    let rate = |rate: u64| render_exact_rate_of(goal, rate);
    match record.outcome {
        Outcome::Found { rate: passes, failing_rate } => {
            format!("{} keeps the limits, {} doesn't", rate(passes), rate(failing_rate))
        }
        Outcome::AtLeast { rate: passes } => {
            format!("{} keeps the limits: no higher rate was asked for (--rate)", rate(passes))
        }
        Outcome::Below { rate: fails } => {
            format!("no rate keeps the limits: {} doesn't, the lowest of --rate", rate(fails))
        }
        Outcome::Keeps { rate: passes } => {
            let zero = goal.limits.loss_ratio <= 0.0 && goal.method == Method::Sequential;
            let below = zero.then(|| render_below(record)).flatten().unwrap_or_default();
            format!("{} keeps the limits{below}", rate(passes))
        }
        Outcome::Breaks { rate: fails } => format!("{} doesn't keep the limits", rate(fails)),
        Outcome::Unsteady { low, high } => format!(
            "unsteady: rates from {} to {} pass at one time and fail at another",
            rate(low),
            rate(high)
        ),
        Outcome::SenderLimited { rate: asked, offered } => format!(
            "this sender can't offer {}: it sent {}; give a lower --rate, or --flows and a larger --size",
            rate(asked),
            rate(offered)
        ),
        Outcome::SenderStalls { rate: asked } => format!(
            "this sender stalled in every trial at {}: other programs take its processors; try again when they \
             are done, or pin its threads (--cpu)",
            rate(asked)
        ),
        Outcome::Interrupted { passed, failed } => {
            let known = [passed.map(|rate| (rate, "passed")), failed.map(|rate| (rate, "failed"))];
            let known: Vec<String> = known
                .into_iter()
                .flatten()
                .map(|(known, what)| format!("{} {what}", rate(known)))
                .collect();
            let known =
                if known.is_empty() { "nothing is known".to_owned() } else { known.join(", ") };
            format!("interrupted: {known}")
        }
        Outcome::Bisected { rate: answer, tried: true } => {
            format!("final answer: {}", rate(answer))
        }
        Outcome::Bisected { rate: answer, tried: false } => {
            format!("final answer: {}, which was never tried: all trials failed", rate(answer))
        }
    }
}

/// What no loss at all shows: the "rule of three" (Hanley, Lippman-Hand, JAMA 1983).
fn render_below(record: &HuntRecord) -> Option<String> {
    let passed = record.trials.iter().filter(|trial| trial.verdict == TrialVerdict::Pass);
    let most = passed.map(|trial| trial.items.arrived).max().filter(|items| *items > 0)?;
    let bound = render_percent(3.0 / most as f64);
    Some(format!(": none of {most} was lost, so the loss is below {bound} with 95 % confidence"))
}

fn render_rate_of(goal: &Goal, rate: u64) -> String {
    match goal.unit {
        RateUnit::BitsPerSecond => render_rate(rate as f64),
        RateUnit::RequestsPerSecond => format!("{}/s", render_count(rate as f64)),
    }
}

/// With four digits: neighbours in a bracket differ by half a percent.
fn render_exact_rate_of(goal: &Goal, rate: u64) -> String {
    let (units, name) = match goal.unit {
        RateUnit::BitsPerSecond => (["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], true),
        RateUnit::RequestsPerSecond => (["", "k", "M", "G", "T"], false),
    };
    let mut scaled = rate as f64;
    let mut place = 0;
    while scaled >= 1000.0 && place + 1 < units.len() {
        scaled /= 1000.0;
        place += 1;
    }
    let decimals = match scaled {
        _ if place == 0 => 0,
        ..10.0 => 3,
        ..100.0 => 2,
        _ => 1,
    };
    match name {
        true => format!("{scaled:.decimals$} {}", units[place]),
        false => format!("{scaled:.decimals$}{} requests/s", units[place]),
    }
}

fn render_percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.001 => format!("{percent:.1e} %"),
        ..0.1 => format!("{percent:.3} %"),
        ..10.0 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}
