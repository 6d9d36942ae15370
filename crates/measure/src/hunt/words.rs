//! What a hunt has found, in a sentence.

use super::{Goal, HuntRecord, Method, Outcome, RateUnit, TrialVerdict};
use crate::units::render_percent;

impl HuntRecord {
    /// What was found, a sentence; with the way out where nothing was.
    pub fn describe(&self) -> String {
        let of_pairs = match self.pairs {
            Some(pairs) if pairs > 1 => format!(" ({pairs} pairs, each at this rate)"),
            _ => String::new(),
        };
        format!("{}{of_pairs}", self.sentence())
    }

    fn sentence(&self) -> String {
        let goal = &self.goal;
        let rate = |rate: u64| render_exact_rate_of(goal, rate);
        match self.outcome {
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
                let below = zero.then(|| self.below()).flatten().unwrap_or_default();
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
                "no trial at {} was valid: senders stalled, or loads of several pairs began apart; other programs \
                 take their processors: try again when they are done, or pin threads (--cpu)",
                rate(asked)
            ),
            Outcome::TooFewSamples { rate: asked } => format!(
                "too few samples of both ends came in three trials at {}: their machines or the channel to them are \
                 too busy; try again when they are not",
                rate(asked)
            ),
            Outcome::Interrupted { passed, failed } => {
                let known =
                    [passed.map(|rate| (rate, "passed")), failed.map(|rate| (rate, "failed"))];
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
    fn below(&self) -> Option<String> {
        let passed = self.trials.iter().filter(|trial| trial.verdict == TrialVerdict::Pass);
        let most = passed.map(|trial| trial.items.arrived).max().filter(|items| *items > 0)?;
        let bound = render_percent(3.0 / most as f64);
        Some(format!(
            ": none of {most} was lost, so the loss is below {bound} with 95 % confidence"
        ))
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
