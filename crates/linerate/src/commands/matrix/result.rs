//! What a matrix came to: a table, a document, an exit code.

use std::collections::BTreeMap;

use linerate_lab::judge::{Judged, Observed, worst};
use linerate_lab::plan::Plan;
use linerate_lab::schedule::{CellStatus, Progress, RunEnding};
use linerate_measure::metric::{self, Unit};
use linerate_measure::run::exit;
use linerate_measure::threshold::Verdict;
use linerate_measure::units::{render_duration_ns, render_rate};
use serde_json::{Value, json};

use super::recorder::{Ended, ending_name, status_name};
use crate::output::{Style, Table};

/// The figures that a row of the table may have.
const SHOWN: [&str; 8] = [
    "hunt_rate_bps",
    "hunt_rate_per_s",
    "goodput_bps",
    "transactions_per_s",
    "connections_per_s",
    "loss_ratio",
    "latency_p50_ns",
    "latency_p99_ns",
];

/// The most failed cells that are named.
const MOST_LEFT_OUT: usize = 20;

/// What a run came to.
pub(super) struct Outcome<'a> {
    plan: &'a Plan,
    run: &'a str,
    ending: &'a RunEnding,
    progress: &'a Progress,
    ends: BTreeMap<u32, Ended>,
    judged: Vec<Judged>,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        run: &'a str,
        ending: &'a RunEnding,
        progress: &'a Progress,
        ends: BTreeMap<u32, Ended>,
    ) -> Self {
        let judged = progress.judge.verdicts(plan);
        Self { plan, run, ending, progress, ends, judged }
    }

    pub(super) fn exit_code(&self) -> u8 {
        let has = |status| self.ends.values().any(|ended| ended.status == status);
        match (self.ending, worst(&self.judged)) {
            (RunEnding::Interrupted, _) => exit::INTERRUPTED,
            (RunEnding::HostLost { .. }, _) => exit::UNREACHABLE,
            (_, Verdict::Fail) => exit::THRESHOLD,
            _ if has(CellStatus::Failed) => exit::FAILED,
            (_, Verdict::Undecided) => exit::UNTRUSTWORTHY,
            _ if has(CellStatus::Untrusted) => exit::UNTRUSTWORTHY,
            (_, Verdict::Pass) => exit::VALID,
        }
    }

    /// A word for each point that has thresholds.
    pub(super) fn verdicts(&self) -> Vec<(u32, String)> {
        let words = (0..self.plan.points.len()).filter_map(|place| {
            Some((u32::try_from(place).ok()?, self.verdict_of(place)?.to_owned()))
        });
        words.collect()
    }

    /// The worst verdict of a point's thresholds; none where it has none.
    fn verdict_of(&self, place: usize) -> Option<&'static str> {
        let of_point = self.judged.iter().filter(|judged| judged.point == place);
        let of_point: Vec<Judged> = of_point.cloned().collect();
        (!of_point.is_empty()).then(|| verdict_name(worst(&of_point)))
    }

    /// The samples of a point that have their end.
    fn samples(&self, place: usize) -> impl Iterator<Item = &Observed> {
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        self.progress.judge.samples(number)
    }

    /// The mean of a figure over the measured samples of a point; what adds up is added over pairs.
    fn mean(&self, place: usize, figure: &str) -> Option<f64> {
        let measured = self.samples(place).filter(|observed| !observed.pairs.is_empty());
        let values: Option<Vec<f64>> =
            measured.map(|observed| observed.combined(figure, true)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    pub(super) fn render_text(&self) -> String {
        let shown: Vec<&str> = SHOWN
            .into_iter()
            .filter(|figure| {
                (0..self.plan.points.len()).any(|place| self.mean(place, figure).is_some())
            })
            .collect();
        let mut head = vec!["point", "samples"];
        head.extend(&shown);
        head.push("verdict");
        let mut table = Table::with_head(&head);
        for (place, point) in self.plan.points.iter().enumerate() {
            let count = self.samples(place).filter(|observed| !observed.pairs.is_empty()).count();
            let mut row = vec![point.describe(), count.to_string()];
            row.extend(shown.iter().map(|figure| {
                self.mean(place, figure).map_or("-".to_owned(), |mean| render(figure, mean))
            }));
            row.push(self.verdict_of(place).unwrap_or("-").to_owned());
            table.push(row);
        }
        let mut text = table.render(Style::Plain);
        for judged in self.judged.iter().filter(|one| one.judgement.verdict != Verdict::Pass) {
            let warns = if judged.threshold.warns { "warning: " } else { "" };
            text.push_str(&format!("{warns}{}\n", judged.explain(self.plan)));
        }
        text.push_str(&self.render_left_out());
        let (over, cells) = (self.progress.over(), self.progress.cells.len());
        let left = cells - over;
        let ending = match self.ending {
            RunEnding::Complete => format!("run {}: all {cells} cells are done", self.run),
            RunEnding::OverBudget { .. } => {
                format!("run {}: partial, {left} cells were dropped for the budget", self.run)
            }
            RunEnding::Aborted { why } => format!("run {}: aborted, {why}", self.run),
            RunEnding::HostLost { why } => format!("run {}: a host was lost, {why}", self.run),
            RunEnding::Interrupted => format!("run {}: interrupted", self.run),
        };
        text.push_str(&ending);
        if left > 0 {
            text.push_str(&format!(
                "; {over} of {cells} cells are done, --resume {} goes on",
                self.run
            ));
        }
        text.push('\n');
        text
    }

    /// The cells whose figures no mean has, since they failed.
    fn render_left_out(&self) -> String {
        let cells = self.progress.cells.iter().zip(0_u32..);
        let failed = cells.filter_map(|(state, position)| {
            let ended = self.ends.get(&position)?;
            let point = self.plan.points.get(usize::try_from(state.cell.iteration).ok()?)?;
            let line = || format!("{}, sample {}", point.describe(), state.cell.sample + 1);
            (ended.status == CellStatus::Failed).then(line)
        });
        let failed: Vec<String> = failed.collect();
        let more = match failed.len().saturating_sub(MOST_LEFT_OUT) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = failed.iter().take(MOST_LEFT_OUT).cloned().collect::<Vec<_>>().join("; ");
        match failed.is_empty() {
            true => String::new(),
            false => format!("no mean has what failed: {named}{more}\n"),
        }
    }

    pub(super) fn document(&self) -> Value {
        let points = self.plan.points.iter().enumerate().map(|(place, point)| {
            let samples = self
                .samples(place)
                .map(|observed| json!({ "pairs": observed.pairs, "trusted": observed.is_trusted }));
            json!({
                "point": place,
                "workload": point.workload,
                "settings": point.iteration.settings,
                "verdict": self.verdict_of(place),
                "samples": samples.collect::<Vec<_>>(),
            })
        });
        let thresholds = self.judged.iter().map(|judged| {
            json!({
                "point": judged.point,
                "threshold": judged.threshold.text(),
                "judgement": judged.judgement,
            })
        });
        let cells = self.progress.cells.iter().zip(0_u32..).map(|(state, position)| {
            let ended = self.ends.get(&position);
            json!({
                "position": position,
                "point": state.cell.iteration,
                "sample": state.cell.sample + 1,
                "over": state.is_over,
                "attempts": state.attempts,
                "status": ended.map(|ended| status_name(ended.status)),
                "reason": ended.map(|ended| &ended.reason),
            })
        });
        json!({
            "schema": "linerate.matrix_result/1",
            "run": self.run,
            "ending": ending_name(self.ending),
            "partial": *self.ending != RunEnding::Complete,
            "exit_code": self.exit_code(),
            "points": points.collect::<Vec<_>>(),
            "thresholds": thresholds.collect::<Vec<_>>(),
            "cells": cells.collect::<Vec<_>>(),
        })
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Undecided => "undecided",
        Verdict::Fail => "fail",
    }
}

/// A figure with its unit.
fn render(figure: &str, value: f64) -> String {
    let unit =
        linerate_measure::threshold::metric_of(figure).map(|metric: &metric::Metric| metric.unit);
    match unit {
        Some(Unit::BitsPerSecond) => render_rate(value),
        Some(Unit::Nanoseconds) => render_duration_ns(value.max(0.0) as u64),
        Some(Unit::Ratio) => format!("{:.3} %", value * 100.0),
        _ => format!("{value:.1}"),
    }
}
