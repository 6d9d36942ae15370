//! A hunt as text: what is sought, the trials one by one, and what was found.

use linerate_measure::hunt::{
    Breach, Goal, HuntTime, Purpose, RateUnit, Shortfall, TrialRecord, TrialVerdict,
};
use linerate_measure::units::{render_count, render_duration_ns, render_percent, render_rate};

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
        TrialVerdict::Open => "open".to_owned(),
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
        TrialVerdict::Fail { why: Breach::Backpressure } => "no room to send more".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Offered } => "sender fell short".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Uneven } => "sender was uneven".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Short } => "too few samples".to_owned(),
        TrialVerdict::Invalid { why: Shortfall::Apart } => "pairs began apart".to_owned(),
        _ if !goal.limits.latencies.is_empty() => slow(),
        // Not the path's fault.
        _ if items.dropped_by_socket.unwrap_or(0) * 2 > items.lost.max(1) => {
            format!("{loss}, in a full socket")
        }
        _ if items.refused.unwrap_or(0) * 2 > items.lost.max(1) => {
            format!("{loss}, in the sender's own queue")
        }
        _ => loss,
    };
    let purpose = if trial.purpose == Purpose::Confirm { ", long" } else { "" };
    format!("{why}{purpose}")
}

fn render_rate_of(goal: &Goal, rate: u64) -> String {
    match goal.unit {
        RateUnit::BitsPerSecond => render_rate(rate as f64),
        RateUnit::RequestsPerSecond => format!("{}/s", render_count(rate as f64)),
    }
}
