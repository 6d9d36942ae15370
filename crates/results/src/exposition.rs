//! The last finished run of each title as OpenMetrics text, for monitoring systems
//! (<https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md>).
//!
//! What isn't known has no sample: no 0 stands for it. Nothing is measured for a reading.
//!
//! All families are gauges. The text is also right in Prometheus' own format, which has no other type that would fit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::StoreError;
use crate::compare::Mean;
use crate::read::{IterationRow, RunDetails, RunRow};
use crate::store::Store;
use crate::values::{Values, worst_verdict};

/// The type of the text, for HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Most titles that are told; those with the newest runs.
const MOST_TITLES: usize = 500;
/// Most iterations of a run whose results are told.
const MOST_ITERATIONS: usize = 500;
/// The longest value of a label, in characters.
pub(crate) const LONGEST_LABEL: usize = 256;

/// A family of metrics: its name, what its samples end with as a unit, and what it is.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    unit: Option<&'static str>,
    /// The metric's name and unit where it is pushed, by the conventions of OpenTelemetry; `None`: it only has a meaning
    /// at the time of a reading.
    pub(crate) pushed: Option<(&'static str, &'static str)>,
    pub(crate) help: &'static str,
    /// Its samples of a run: labels beside the title, and the value.
    samples: fn(&Facts, i64) -> Vec<(Labels, f64)>,
}

impl Family {
    /// Its samples of a run at a time: all labels, as they are told, and the value.
    pub(crate) fn samples_of(&self, facts: &Facts, now_ms: i64) -> Vec<(Labels, f64)> {
        let title = || ("title", title_of(&facts.row).to_owned());
        let samples = (self.samples)(facts, now_ms).into_iter().map(|(labels, value)| {
            let labels = std::iter::once(title()).chain(labels);
            (labels.map(|(name, value)| (name, told(&value))).collect(), value)
        });
        samples.collect()
    }
}

/// Names and values of labels.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// What is told of a run. It has ended, so nothing of it changes any more.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) row: RunRow,
    pub(crate) verdict: Option<&'static str>,
    pub(crate) results: Vec<(Labels, f64)>,
}

pub(crate) const STATUSES: [&str; 3] = ["complete", "failed", "stopped"];
pub(crate) const VERDICTS: [&str; 3] = ["pass", "fail", "undecided"];

/// How far the figures of a run can be trusted.
pub(crate) const TRUSTS: [&str; 3] = ["valid", "doubtful", "invalid"];

pub(crate) static FAMILIES: [Family; 9] = [
    Family {
        name: "linerate_run_info",
        unit: None,
        pushed: Some(("linerate.run.info", "")),
        help: "What the last finished run of a title was; always 1.",
        samples: |facts, _| {
            let row = &facts.row;
            let labels = vec![
                ("run", row.run.clone()),
                ("command", row.command.clone()),
                ("benchmarks", row.origin.benchmarks.clone()),
                ("version", row.version.clone()),
            ];
            vec![(labels, 1.0)]
        },
    },
    Family {
        name: "linerate_run_ended_timestamp_seconds",
        unit: Some("seconds"),
        pushed: Some(("linerate.run.ended_timestamp", "s")),
        help: "When the last finished run of a title ended, since 1970, UTC.",
        samples: |facts, _| of_some(facts.row.ended_ms.map(|ms| ms as f64 / 1e3)),
    },
    Family {
        name: "linerate_run_age_seconds",
        unit: Some("seconds"),
        pushed: None,
        help: "Time since the last finished run of a title ended.",
        samples: |facts, now_ms| {
            let age_ms = facts.row.ended_ms.map(|ended_ms| now_ms.saturating_sub(ended_ms));
            // A clock that was set back says nothing of the age.
            of_some(age_ms.filter(|age_ms| *age_ms >= 0).map(|ms| ms as f64 / 1e3))
        },
    },
    Family {
        name: "linerate_run_status",
        unit: None,
        pushed: Some(("linerate.run.status", "")),
        help: "How the last finished run of a title ended: 1 for its status, 0 for the others.",
        samples: |facts, _| one_of("status", &STATUSES, &facts.row.status),
    },
    Family {
        name: "linerate_run_trust",
        unit: None,
        pushed: Some(("linerate.run.trust", "")),
        help: "How far the run's figures can be trusted, by its worst sample: 1 for its word, 0 for the others.",
        samples: |facts, _| one_of("trust", &TRUSTS, &facts.row.verdict),
    },
    Family {
        name: "linerate_run_verdict",
        unit: None,
        pushed: Some(("linerate.run.verdict", "")),
        help: "Whether the run met its thresholds: 1 for its verdict, 0 for the others; none without thresholds.",
        samples: |facts, _| {
            facts.verdict.map_or_else(Vec::new, |verdict| one_of("verdict", &VERDICTS, verdict))
        },
    },
    Family {
        name: "linerate_run_cells",
        unit: None,
        pushed: Some(("linerate.run.cells", "{cell}")),
        help: "Cells of the run's plan: points of the matrix times samples.",
        samples: |facts, _| of_some(Some(f64::from(facts.row.cells))),
    },
    Family {
        name: "linerate_run_cells_done",
        unit: None,
        pushed: Some(("linerate.run.cells_done", "{cell}")),
        help: "Cells of the run that were measured.",
        samples: |facts, _| of_some(Some(f64::from(facts.row.done))),
    },
    Family {
        name: "linerate_run_result",
        unit: None,
        pushed: Some(("linerate.run.result", "")),
        help: "What an iteration is judged by, the mean of its measured samples, in the unit of label unit; trust has the worst \
               verdict of these.",
        samples: |facts, _| facts.results.clone(),
    },
];

fn of_some(value: Option<f64>) -> Vec<(Labels, f64)> {
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// A sample for each word, 1 for the one that is meant. A word that isn't known has none.
fn one_of(label: &'static str, words: &[&str], meant: &str) -> Vec<(Labels, f64)> {
    if !words.contains(&meant) {
        return Vec::new();
    }
    let sample =
        |word: &&str| (vec![(label, (*word).to_owned())], if *word == meant { 1.0 } else { 0.0 });
    words.iter().map(sample).collect()
}

/// Makes the text, and keeps what it has read of runs that are still the last of their titles.
#[derive(Debug, Default)]
pub struct Exposition {
    known: BTreeMap<String, Facts>,
}

impl Exposition {
    /// One that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text at a time (UTC, milliseconds since 1970).
    ///
    /// # Errors
    /// Where the store can't be read.
    pub fn render(&mut self, store: &Store, now_ms: i64) -> Result<String, StoreError> {
        let rows = last_finished(store.runs()?);
        let mut known = BTreeMap::new();
        for (title, row) in rows {
            let kept = self.known.remove(&title).filter(|facts| facts.row == row);
            let facts = match kept {
                Some(facts) => facts,
                None => read(store, row)?,
            };
            known.insert(title, facts);
        }
        self.known = known;
        Ok(self.render_known(now_ms))
    }

    /// The text of what was read before: without any run where nothing was.
    pub fn render_known(&self, now_ms: i64) -> String {
        let mut text = String::new();
        for family in &FAMILIES {
            let Family { name, unit, help, .. } = family;
            // Nothing fails to be written to memory.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            if let Some(unit) = unit {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            for facts in self.known.values() {
                for (labels, value) in family.samples_of(facts, now_ms) {
                    let labels = labels.into_iter();
                    let labels =
                        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)));
                    let labels = labels.collect::<Vec<_>>().join(",");
                    let _ = writeln!(text, "{name}{{{labels}}} {value}");
                }
            }
        }
        text.push_str("# EOF\n");
        text
    }
}

/// A run without a title goes by its command.
fn title_of(run: &RunRow) -> &str {
    if run.title.is_empty() { &run.command } else { &run.title }
}

/// Whether a run has ended, so that there is something to tell of it.
pub fn is_finished(run: &RunRow) -> bool {
    run.ended_ms.is_some() && STATUSES.contains(&run.status.as_str())
}

/// The run of each title that ended last.
pub fn last_finished(runs: Vec<RunRow>) -> BTreeMap<String, RunRow> {
    let mut last: BTreeMap<String, RunRow> = BTreeMap::new();
    for run in runs {
        let title = title_of(&run);
        let is_later = last.get(title).is_none_or(|known| known.ended_ms < run.ended_ms);
        if is_finished(&run) && is_later {
            last.insert(title.to_owned(), run);
        }
    }
    if last.len() > MOST_TITLES {
        let mut ends: Vec<_> = last.values().map(|run| run.ended_ms).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let oldest = ends.get(MOST_TITLES - 1).copied().flatten();
        last.retain(|_, run| run.ended_ms >= oldest);
    }
    last
}

/// Reads what is told of a run.
pub(crate) fn read(store: &Store, row: RunRow) -> Result<Facts, StoreError> {
    let mut details = store.details(row.id)?;
    let verdict = verdict_of(&details);
    details.iterations.truncate(MOST_ITERATIONS);
    let values = Values::read(store, &details)?;
    let all = details.iterations.iter().zip(&values.samples).zip(&values.units);
    let results = all.filter_map(|((iteration, values), unit)| result_of(iteration, values, unit));
    Ok(Facts { verdict, row, results: results.collect() })
}

/// The worst verdict of the iterations; none where none has one.
fn verdict_of(details: &RunDetails) -> Option<&'static str> {
    let words: BTreeSet<&str> =
        details.iterations.iter().map(|iteration| iteration.status.as_str()).collect();
    // Those without thresholds have no word.
    let words: BTreeSet<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    if words.contains("fail") {
        Some("fail")
    } else if words.iter().eq(["pass"].iter()) {
        Some("pass")
    } else {
        words.iter().any(|word| VERDICTS.contains(word)).then_some("undecided")
    }
}

/// What an iteration came to in its primary metric, by the samples that were measured; `None` where none has it.
fn result_of(
    iteration: &IterationRow,
    values: &[Option<f64>],
    unit: &str,
) -> Option<(Labels, f64)> {
    let metric = iteration.primary_metric.split(',').next().unwrap_or_default();
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let mean = Mean::of(&known).map(|mean| mean.mean).filter(|mean| mean.is_finite())?;
    let params = iteration.params.iter().map(|param| format!("{}={}", param.arg, param.value));
    let mut labels = vec![
        ("iteration", iteration.num.to_string()),
        ("metric", metric.to_owned()),
        ("unit", unit.to_owned()),
        ("params", params.collect::<Vec<_>>().join(" ")),
    ];
    let trust = worst_verdict(&iteration.samples);
    if !trust.is_empty() {
        labels.push(("trust", trust.to_owned()));
    }
    Some((labels, mean))
}

/// A label's value without what no label may have.
fn told(value: &str) -> String {
    let letters = value.chars().take(LONGEST_LABEL);
    letters.map(|letter| if letter.is_control() && letter != '\n' { '?' } else { letter }).collect()
}

/// A label's value as the text has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
