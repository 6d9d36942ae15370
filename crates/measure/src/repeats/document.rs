//! What several runs come to: one document, whatever happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Asked, FigureSpread, LEAST_WITH_INTERVAL, main_spread, spreads_of};
use crate::comparison::{Drift, Figures, Side, Trust, drift_of, figures_of_run};
use crate::run::{Outcome, Run, exit};
use crate::trust::{Reason, ReasonCode, ReasonUnit, Severity};
use crate::units::render_percent;

/// Several runs of one plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// The version of this document's format: `linerate.repeats/1`.
    pub schema: String,
    /// How many runs were asked for; with a precision the most.
    pub most_runs: usize,
    /// The precision that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// Every run in its order.
    pub runs: Vec<RepeatedRun>,
    /// Each figure over the runs.
    pub metrics: Vec<FigureSpread>,
    /// Whether the first figure changed from run to run; absent of fewer than four.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// How it ended, and whether it can be trusted.
    pub status: RepeatsStatus,
    /// The whole document of each run, in the order of `runs`; empty where each stands by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Run>,
}

/// A precision, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Half the interval's width as a share of the mean that was asked for.
    pub asked: f64,
    /// The figure that it is about; absent where none was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is; absent where there is no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<f64>,
}

/// One run of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedRun {
    /// The run's id.
    pub run_id: String,
    /// What the run alone would return.
    pub exit_code: u8,
    /// How far the run alone can be trusted; absent where that was not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Trust>,
    /// What was measured; empty of a run that failed or was interrupted.
    pub figures: Figures,
    /// Why it failed, is invalid or doubtful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RepeatedRun {
    /// What of a run's document counts. A run that was cut off is shorter than the others, so it has no figures.
    pub fn of(run: &Run) -> Self {
        let is_whole = matches!(run.status.outcome, Outcome::Complete | Outcome::Untrustworthy);
        let status = &run.status;
        let first = status.reasons.iter().max_by_key(|reason| reason.severity);
        Self {
            run_id: run.run_id.clone(),
            exit_code: status.exit_code,
            verdict: status.verdict,
            figures: if is_whole { figures_of_run(run) } else { Figures::new() },
            message: status.message.clone().or_else(|| first.map(|reason| reason.text.clone())),
        }
    }
}

/// How a series of runs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All runs that were asked for were made.
    Complete,
    /// The precision was reached.
    Converged,
    /// The most runs were made, and the precision was not reached.
    DidNotConverge,
    /// The user cut it off.
    Interrupted,
    /// A run could not be measured.
    Failed,
}

/// Whether several runs can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatsStatus {
    /// How the series ended.
    pub outcome: Ending,
    /// How far it can be trusted.
    pub verdict: Trust,
    /// The exit code of the command, the highest of its runs ([`exit`]).
    pub exit_code: u8,
    /// Why it is doubtful or invalid.
    pub reasons: Vec<Reason>,
}

impl RepeatsStatus {
    /// Gives a doubtful result the exit code of one that is not to be trusted.
    pub fn be_strict(&mut self) {
        if self.verdict != Trust::Valid && self.exit_code == exit::VALID {
            self.exit_code = exit::UNTRUSTWORTHY;
        }
    }
}

impl Repeats {
    /// The name and version of the document's format.
    pub const SCHEMA: &'static str = "linerate.repeats/1";

    /// What these runs come to, without their documents.
    pub fn of(asked: &Asked, runs: Vec<RepeatedRun>) -> Self {
        let figures: Vec<Figures> =
            runs.iter().map(|run| run.figures.clone()).filter(|one| !one.is_empty()).collect();
        let metrics = spreads_of(&figures);
        let main = main_spread(&figures);
        let precision = asked.precision.map(|share| Precision {
            asked: share,
            name: main.as_ref().map(|spread| spread.name.clone()),
            reached: main.as_ref().and_then(FigureSpread::relative_half_width),
        });
        let drift = main.as_ref().and_then(|spread| {
            let values = figures.iter().filter_map(|one| one.get(&spread.name));
            drift_of(&spread.name, &values.map(|value| (Side::A, *value)).collect::<Vec<_>>())
        });
        let status = status_of(asked, &runs, &figures, precision.as_ref());
        let schema = Self::SCHEMA.to_owned();
        let (most_runs, documents) = (asked.most_runs, Vec::new());
        Self { schema, most_runs, precision, runs, metrics, drift, status, documents }
    }
}

fn status_of(
    asked: &Asked,
    runs: &[RepeatedRun],
    figures: &[Figures],
    precision: Option<&Precision>,
) -> RepeatsStatus {
    let exit_code = runs.iter().map(|run| run.exit_code).max().unwrap_or(exit::INTERRUPTED);
    let failed = runs.iter().find(|run| is_failure(run));
    let outcome = match () {
        () if exit_code == exit::INTERRUPTED => Ending::Interrupted,
        () if failed.is_some() => Ending::Failed,
        () if asked.is_reached(figures) => Ending::Converged,
        () if runs.len() < asked.most_runs => Ending::Interrupted,
        () if asked.precision.is_some() => Ending::DidNotConverge,
        () => Ending::Complete,
    };
    let exit_code = if outcome == Ending::Interrupted { exit::INTERRUPTED } else { exit_code };
    let mut reasons = Vec::new();
    if matches!(outcome, Ending::Interrupted | Ending::Failed) {
        let text = format!("{} of {} runs were measured", figures.len(), asked.most_runs);
        reasons.push(Reason::few(
            figures.len(),
            asked.most_runs,
            text,
            "measure again, to the end",
        ));
    }
    if let Some(message) = failed.and_then(|run| run.message.as_ref()) {
        reasons.push(Reason::doubt(ReasonCode::RunFailed, format!("a run failed: {message}")));
    }
    if let Some(precision) = precision.filter(|_| outcome == Ending::DidNotConverge) {
        reasons.push(not_converged(precision, runs.len()));
    }
    if !figures.is_empty() && figures.len() < LEAST_WITH_INTERVAL {
        let text = format!("fewer than {LEAST_WITH_INTERVAL} runs have no interval");
        let way_out = "make at least 3 runs";
        reasons.push(Reason::few(figures.len(), LEAST_WITH_INTERVAL, text, way_out));
    }
    reasons.extend(untrusted(runs));
    let verdict = match () {
        () if figures.is_empty() => {
            let few = Reason::few(0, 1, "no figure was measured".to_owned(), "measure again");
            reasons.insert(0, Reason { severity: Severity::Invalid, ..few });
            Trust::Invalid
        }
        () if reasons.is_empty() => Trust::Valid,
        () => Trust::Doubtful,
    };
    RepeatsStatus { outcome, verdict, exit_code, reasons }
}

/// Whether a run ended the series because it could not be measured.
fn is_failure(run: &RepeatedRun) -> bool {
    !matches!(run.exit_code, exit::VALID | exit::UNTRUSTWORTHY | exit::INTERRUPTED)
}

fn not_converged(precision: &Precision, runs: usize) -> Reason {
    let asked = render_percent(precision.asked);
    let name = precision.name.as_deref().unwrap_or("the figure");
    let text = match precision.reached {
        Some(reached) => format!(
            "did not converge: {name} is known to +- {:.2} % after {runs} runs, and {asked} were asked for",
            reached * 100.0
        ),
        None => format!("did not converge: {name} has no interval after {runs} runs"),
    };
    Reason {
        value: precision.reached,
        limit: Some(precision.asked),
        unit: Some(ReasonUnit::Ratio),
        way_out: Some("allow more runs, or ask for less precision".to_owned()),
        ..Reason::doubt(ReasonCode::NotConverged, text)
    }
}

/// What is to be said of measured runs that are invalid, and of those that are doubtful.
fn untrusted(runs: &[RepeatedRun]) -> Vec<Reason> {
    let told = |what: &str, is_meant: &dyn Fn(&RepeatedRun) -> bool| {
        let meant = |run: &&RepeatedRun| !run.figures.is_empty() && is_meant(run);
        let first = runs.iter().find(meant)?;
        let why = first.message.as_deref().unwrap_or("see its notes");
        let count = runs.iter().filter(meant).count();
        let text = format!("{count} of {} runs are {what}, the first: {why}", runs.len());
        Some(Reason {
            value: Some(count as f64),
            limit: Some(0.0),
            unit: Some(ReasonUnit::Count),
            ..Reason::doubt(ReasonCode::DoubtfulRuns, text)
        })
    };
    // Doubt has the exit code of an invalid run where strictness was asked for. Earlier documents have no verdict.
    let is_invalid = |run: &RepeatedRun| match run.verdict {
        Some(verdict) => verdict == Trust::Invalid,
        None => run.exit_code != exit::VALID,
    };
    let is_doubtful = |run: &RepeatedRun| !is_invalid(run) && run.verdict == Some(Trust::Doubtful);
    [told("not to be trusted", &is_invalid), told("doubtful", &is_doubtful)]
        .into_iter()
        .flatten()
        .collect()
}
