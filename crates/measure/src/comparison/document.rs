//! What a comparison comes to: one document, whatever happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::differences::Difference;
use super::drift::{Drift, drift_of};
use super::estimate::{FigureRatio, Finding, compare_pairs, compare_stored};
use super::figures::Figures;
use super::order::Side;
use crate::run::exit;
use crate::trust::Trust;

/// A comparison of two ways to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The version of this document's format: `linerate.comparison/1`.
    pub schema: String,
    /// A and B: command lines, or the files of stored runs.
    pub commands: [String; 2],
    /// What drew the order of each pair; absent of stored runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Pairs that were asked for; 0 of stored runs.
    pub pairs_asked: usize,
    /// Every run in the order in which it was made.
    pub runs: Vec<ComparedRun>,
    /// Each figure that both have.
    pub metrics: Vec<FigureRatio>,
    /// Whether the first figure changed in the course of the comparison; absent of stored runs and of few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// What `--fail-if` asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<JudgedCondition>,
    /// What else stored runs differ in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Whether it can be trusted.
    pub status: ComparisonStatus,
}

/// One run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Whose it was.
    pub side: Side,
    /// The number of its pair, from 1; of stored runs the run's number of its side.
    pub pair: usize,
    /// The run's id, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// What the program returned.
    pub exit_code: i32,
    /// What was measured; empty of a run that failed.
    pub figures: Figures,
    /// Why it failed, or is not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A condition and whether it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedCondition {
    /// The condition: `goodput < -2%`.
    pub condition: String,
    /// Whether it held with the whole interval; absent: its figure has no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
}

/// Whether a comparison can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparisonStatus {
    /// How far.
    pub verdict: Trust,
    /// The exit code of the command ([`exit`]).
    pub exit_code: u8,
    /// Whether the user cut it off.
    pub interrupted: bool,
    /// Why it is doubtful or invalid.
    pub reasons: Vec<String>,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// A and B: command lines, or the files of stored runs.
    pub commands: [String; 2],
    /// Differences that are not accepted.
    pub conditions: Vec<Condition>,
}

impl Comparison {
    /// The name and version of the document's format.
    pub const SCHEMA: &'static str = "linerate.comparison/1";

    /// What interleaved runs come to. A pair counts where both of its runs have figures.
    pub fn of_pairs(
        asked: &Asked,
        (seed, pairs_asked): (u64, usize),
        runs: Vec<ComparedRun>,
        interrupted: bool,
    ) -> Self {
        let pairs = complete_pairs(&runs);
        let metrics = compare_pairs(&pairs);
        let mut reasons = Vec::new();
        if pairs.len() < pairs_asked {
            reasons.push(format!("{} of {pairs_asked} pairs are complete", pairs.len()));
        }
        // A ratio with 0 has no logarithm.
        reasons.extend(metrics.iter().filter_map(|metric| {
            let is_zero = |figures: &Figures| figures.get(&metric.name) == Some(&0.0);
            let zeros = pairs.iter().filter(|pair| pair.iter().any(is_zero)).count();
            let (name, all) = (&metric.name, pairs.len());
            (zeros > 0).then(|| format!("{name} is 0 in {zeros} of {all} pairs, which don't count"))
        }));
        reasons.extend(untrusted(&runs));
        let drift =
            metrics.first().and_then(|first| drift_of(&first.name, &values_of(&runs, &first.name)));
        let status = ComparisonStatus {
            verdict: Trust::Valid,
            exit_code: exit::VALID,
            interrupted,
            reasons,
        };
        let comparison = Self {
            seed: Some(seed),
            pairs_asked,
            drift,
            ..Self::new(asked, runs, metrics, status)
        };
        comparison.judged(asked)
    }

    /// What stored runs of A and B come to.
    pub fn of_stored(asked: &Asked, runs: Vec<ComparedRun>, differences: Vec<Difference>) -> Self {
        let [a, b] = Side::BOTH.map(|side| -> Vec<Figures> {
            runs.iter().filter(|run| run.side == side).map(|run| run.figures.clone()).collect()
        });
        let metrics = compare_stored(&a, &b);
        let mut reasons = vec!["not interleaved: drift can't be told from difference".to_owned()];
        if a.len() < 2 || b.len() < 2 {
            reasons.push(
                "a single run says nothing of how much runs vary: there is no interval".to_owned(),
            );
        }
        reasons.extend(untrusted(&runs));
        let status = ComparisonStatus {
            verdict: Trust::Valid,
            exit_code: exit::VALID,
            interrupted: false,
            reasons,
        };
        Self { differences, ..Self::new(asked, runs, metrics, status) }.judged(asked)
    }

    fn new(
        asked: &Asked,
        runs: Vec<ComparedRun>,
        metrics: Vec<FigureRatio>,
        status: ComparisonStatus,
    ) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            commands: asked.commands.clone(),
            seed: None,
            pairs_asked: 0,
            runs,
            metrics,
            drift: None,
            conditions: Vec::new(),
            differences: Vec::new(),
            status,
        }
    }

    /// Judges the conditions, and says how far it can be trusted. Differences are told before doubts: a doubtful
    /// comparison in which a condition holds fails.
    fn judged(mut self, asked: &Asked) -> Self {
        for condition in &asked.conditions {
            let holds = condition.holds(&self.metrics);
            let condition = condition.to_string();
            if holds.is_none() {
                self.status
                    .reasons
                    .push(format!("{condition} can't be judged: the figure has no interval"));
            }
            self.conditions.push(JudgedCondition { condition, holds });
        }
        let has_failed = self.conditions.iter().any(|one| one.holds == Some(true));
        let is_unjudged = self.conditions.iter().any(|one| one.holds.is_none());
        let status = &mut self.status;
        (status.verdict, status.exit_code) = match () {
            () if self.metrics.is_empty() => {
                status.reasons.insert(0, "no figure was measured on both sides".to_owned());
                (Trust::Invalid, exit::FAILED)
            }
            () if has_failed => (doubt(status), exit::THRESHOLD),
            () if is_unjudged => (Trust::Doubtful, exit::UNTRUSTWORTHY),
            () => (doubt(status), exit::VALID),
        };
        if self.status.interrupted {
            self.status.exit_code = exit::INTERRUPTED;
        }
        self
    }

    /// Complete pairs.
    pub fn complete_pairs(&self) -> usize {
        complete_pairs(&self.runs).len()
    }

    /// Whether any figure differs.
    pub fn differs(&self) -> bool {
        self.metrics.iter().any(|one| matches!(one.verdict, Finding::AHigher | Finding::BHigher))
    }
}

fn doubt(status: &ComparisonStatus) -> Trust {
    if status.reasons.is_empty() { Trust::Valid } else { Trust::Doubtful }
}

/// The figures of pairs whose runs both have some, A's first.
fn complete_pairs(runs: &[ComparedRun]) -> Vec<[Figures; 2]> {
    let of_side = |pair: usize, side: Side| {
        let run = runs.iter().find(|run| run.pair == pair && run.side == side)?;
        (!run.figures.is_empty()).then(|| run.figures.clone())
    };
    let last = runs.iter().map(|run| run.pair).max().unwrap_or(0);
    (1..=last).filter_map(|pair| Some([of_side(pair, Side::A)?, of_side(pair, Side::B)?])).collect()
}

fn values_of(runs: &[ComparedRun], name: &str) -> Vec<(Side, f64)> {
    runs.iter().filter_map(|run| Some((run.side, *run.figures.get(name)?))).collect()
}

/// What is to be said of measured runs that are not to be trusted.
fn untrusted(runs: &[ComparedRun]) -> Option<String> {
    let is_untrusted =
        |run: &&ComparedRun| !run.figures.is_empty() && run.exit_code != i32::from(exit::VALID);
    let mut untrusted = runs.iter().filter(is_untrusted);
    let first = untrusted.next()?;
    let why = first.message.as_deref().unwrap_or("its program returned an error");
    Some(format!("{} runs are not to be trusted, the first: {why}", untrusted.count() + 1))
}
