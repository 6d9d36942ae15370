//! The flags that make several runs of one plan.

use clap::Args;
use linerate_measure::repeats::{Asked, MOST_RUNS, USUAL_MOST_RUNS};

use super::values;

/// The flags that make several runs of one plan.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Repeats")]
pub struct RepeatArgs {
    /// Make N runs one after the other, and print how much they vary [with --precision at most N; default: 60]
    #[arg(long, value_name = "N", value_parser = runs, conflicts_with = "start_at", allow_hyphen_values = true, hide_short_help = true)]
    pub repeat: Option<usize>,
    /// Make runs, 8 at least, until the mean of goodput, transactions or connections is known to so much
    #[arg(long, value_name = "PERCENT", value_parser = precision, conflicts_with = "start_at", allow_hyphen_values = true, hide_short_help = true)]
    pub precision: Option<f64>,
}

impl RepeatArgs {
    /// What was asked for; `None`: one run.
    pub fn asked(self) -> Option<Asked> {
        let Self { repeat, precision } = self;
        let most_runs = repeat.or(precision.map(|_| USUAL_MOST_RUNS))?;
        Some(Asked { most_runs, precision })
    }
}

fn runs(text: &str) -> Result<usize, String> {
    let runs = text.parse().ok().filter(|runs| (1..=MOST_RUNS).contains(runs));
    runs.ok_or_else(|| format!("a number of runs is from 1 to {MOST_RUNS}"))
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::percent(text)?;
    if share > 0.0 { Ok(share) } else { Err("no number of runs makes a figure exact".to_owned()) }
}
