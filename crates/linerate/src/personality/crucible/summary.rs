//! The answer of `get result`: a run's parameters, metrics, samples and primary metrics.

use std::collections::{BTreeMap, BTreeSet};

use linerate_personality::crucible::quirk::Reading;
use linerate_results::query::SeriesQuery;
use linerate_results::read::{IterationRow, RunDetails, SampleRow};
use linerate_results::values::Values;
use linerate_results::{RunId, Store, StoreError};
use linerate_wire::visible::visible_line;
use serde_json::{Value, json};

/// What a run came to.
pub(super) struct RunResult {
    details: RunDetails,
    metrics: BTreeMap<String, Vec<String>>,
    iterations: Vec<IterationResult>,
}

/// What an iteration came to.
struct IterationResult {
    row: IterationRow,
    samples: Vec<SampleResult>,
}

/// A sample that passed.
struct SampleResult {
    uuid: String,
    period: String,
    begin_ms: i64,
    end_ms: i64,
    value: Option<f64>,
    /// Its verdict and why, where it is not valid.
    doubt: Option<(String, String)>,
}

/// Mean and spread of samples. The deviation is that of a sample of all that could be: one value has none.
struct Spread {
    mean: f64,
    min: f64,
    max: f64,
    deviation: f64,
}

impl RunResult {
    /// Reads a run with its values.
    ///
    /// # Errors
    /// Where the store can't be read.
    pub(super) fn read(store: &Store, run: RunId, reading: Reading) -> Result<Self, StoreError> {
        let details = store.details(run)?;
        let metrics = store.metrics(run)?;
        let own = match reading.is_compat() {
            true => None,
            false => Some(Values::read(store, &details)?),
        };
        let mut iterations = Vec::new();
        for (place, row) in details.iterations.iter().enumerate() {
            let mut samples = Vec::new();
            for (at, sample) in row.samples.iter().enumerate().filter(|(_, one)| one.counts()) {
                let Some(period) = &sample.period else { continue };
                let value = match &own {
                    Some(own) => {
                        own.samples.get(place).and_then(|values| values.get(at).copied().flatten())
                    }
                    None => compat_value(store, run, row, &period.uuid)?,
                };
                samples.push(SampleResult {
                    uuid: sample.uuid.clone(),
                    period: period.uuid.clone(),
                    begin_ms: period.span.begin_ms,
                    end_ms: period.span.end_ms,
                    value,
                    doubt: doubt_of(sample),
                });
            }
            iterations.push(IterationResult { row: row.clone(), samples });
        }
        Ok(Self { details, metrics, iterations })
    }

    /// What is missing of an answer: a sentence, where an iteration has no result.
    pub(super) fn lack(&self) -> Option<String> {
        let run = &self.details.row.run;
        let without = |iteration: &&IterationResult| iteration.spread().is_none();
        let iteration = match self.iterations.iter().find(without) {
            Some(iteration) => iteration,
            None if self.iterations.is_empty() => {
                return Some(format!("the run {run} has no iteration"));
            }
            None => return None,
        };
        let row = &iteration.row;
        Some(match (iteration.samples.is_empty(), row.primary_metric.as_str()) {
            (true, _) => {
                format!("iteration {} of the run {run} has no sample that was measured", row.num)
            }
            (false, "") => format!("iteration {} of the run {run} has no primary metric", row.num),
            (false, metric) => {
                format!("no sample of iteration {} of the run {run} has data of {metric}", row.num)
            }
        })
    }

    /// The parameters that all iterations have alike, sorted.
    fn common(&self) -> BTreeSet<(String, String)> {
        let mut all = self.iterations.iter().map(|iteration| params(&iteration.row));
        let first = all.next().unwrap_or_default();
        all.fold(first, |common, own| common.intersection(&own).cloned().collect())
    }
}

/// What the original's server answers for a sample.
fn compat_value(
    store: &Store,
    run: RunId,
    row: &IterationRow,
    period: &str,
) -> Result<Option<f64>, StoreError> {
    let Some((source, metric)) = row.primary_metric.split_once("::") else { return Ok(None) };
    let query = SeriesQuery {
        period: Some(period.to_owned()),
        compat: true,
        ..SeriesQuery::new(run, source, metric)
    };
    match store.query(&query) {
        Ok(answer) => Ok(answer.groups.first().and_then(|group| group.windows.first()?.value)),
        // A sample may lack what others have.
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The verdict of a sample and why, where it is not valid.
fn doubt_of(sample: &SampleRow) -> Option<(String, String)> {
    let outcome = sample.outcome.as_ref().filter(|_| sample.is_doubted())?;
    Some((outcome.verdict.clone(), outcome.why.clone()))
}

fn params(row: &IterationRow) -> BTreeSet<(String, String)> {
    row.params.iter().map(|param| (param.arg.clone(), param.value.clone())).collect()
}

impl IterationResult {
    fn spread(&self) -> Option<(Vec<f64>, Spread)> {
        let values: Vec<f64> = self.samples.iter().filter_map(|sample| sample.value).collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = Spread {
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: (squares / (count - 1.0)).sqrt(),
        };
        Some((values, spread))
    }
}

impl Spread {
    fn percent(&self) -> f64 {
        self.deviation * 100.0 / self.mean
    }
}

fn join<'a>(pairs: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

/// The original's text.
pub(super) fn render_text(result: &RunResult) -> String {
    let RunDetails { row, tags, .. } = &result.details;
    let mut lines = vec![format!("run-id: {}", row.run)];
    if row.partial {
        lines.push("  partial: yes".to_owned());
    }
    lines.push(format!("  tags: {}", join(tags)));
    lines.push(format!("  benchmark: {}", row.origin.benchmarks));
    let common = result.common();
    lines.push(format!("  common params: {}", join(&common)));
    lines.push("  metrics:".to_owned());
    for (source, types) in &result.metrics {
        lines.push(format!("    source: {source}"));
        lines.push(format!("      types: {}", types.join(" ")));
    }
    for iteration in &result.iterations {
        let own = params(&iteration.row);
        lines.push(format!("    iteration-id: {}", iteration.row.uuid));
        lines.push(format!("      unique params: {}", join(own.difference(&common))));
        lines.push(format!("      primary-period name: {}", iteration.row.primary_period));
        lines.push("      samples:".to_owned());
        for sample in &iteration.samples {
            let seconds = (sample.end_ms - sample.begin_ms) as f64 / 1000.0;
            lines.push(format!("        sample-id: {}", sample.uuid));
            lines.push(format!("          primary period-id: {}", sample.period));
            lines.push(format!(
                "          period range: begin: {} end: {}",
                sample.begin_ms, sample.end_ms
            ));
            lines.push(format!("          period length: {seconds} seconds"));
            if let Some((verdict, why)) = &sample.doubt {
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                lines.push(format!("          not to be trusted: {verdict}{why}"));
            }
        }
        for failed in iteration.row.samples.iter().filter(|sample| sample.status == "failed") {
            let why = if failed.reason.is_empty() {
                String::new()
            } else {
                format!(": {}", failed.reason)
            };
            lines.push(format!("        left out: sample {} failed{why}", failed.num));
        }
        if let Some((values, spread)) = iteration.spread() {
            let values: Vec<String> = values.iter().map(|value| format!("{value:.6}")).collect();
            lines.push(format!(
                "            result: ({}) samples: {} mean: {:.6} min: {:.6} max: {:.6} stddev: {:.6} \
                 stddevpct: {:.6}",
                iteration.row.primary_metric,
                values.join(" "),
                spread.mean,
                spread.min,
                spread.max,
                spread.deviation,
                spread.percent()
            ));
        }
    }
    let shown: Vec<String> = lines.iter().map(|line| visible_line(line)).collect();
    shown.join("\n") + "\n"
}

/// The original's JSON.
pub(super) fn render_json(results: &[RunResult]) -> String {
    let runs: Vec<Value> = results.iter().map(run_document).collect();
    serde_json::to_string_pretty(&json!({ "runs": runs })).unwrap_or_default()
}

fn run_document(result: &RunResult) -> Value {
    let pairs = |pairs: &mut dyn Iterator<Item = &(String, String)>, name: &str| -> Vec<Value> {
        pairs.map(|(key, value)| json!({ name: key, "val": value })).collect()
    };
    let metrics: Vec<Value> = result
        .metrics
        .iter()
        .map(|(source, types)| json!({ "source": source, "types": types }))
        .collect();
    let iterations = result.iterations.iter().map(|iteration| {
        let row = &iteration.row;
        let samples: Vec<Value> = iteration
            .samples
            .iter()
            .map(|sample| {
                let mut document = json!({
                    "sample-id": sample.uuid,
                    "primary-period-id": sample.period,
                    "begin": sample.begin_ms,
                    "end": sample.end_ms,
                    "values": { row.primary_metric.clone(): sample.value },
                });
                if let Some((verdict, why)) = &sample.doubt {
                    document["verdict"] = json!({ "is": verdict, "why": why });
                }
                document
            })
            .collect();
        let results: Vec<Value> = iteration
            .spread()
            .map(|(_, spread)| {
                json!({
                    "primary-metric": row.primary_metric,
                    "mean": spread.mean,
                    "min": spread.min,
                    "max": spread.max,
                    "stddev": spread.deviation,
                    "stddevpct": spread.percent(),
                })
            })
            .into_iter()
            .collect();
        json!({
            "iteration-id": row.uuid,
            "unique-params": pairs(&mut params(row).iter(), "arg"),
            "primary-period": row.primary_period,
            "primary-metric": row.primary_metric,
            "samples": samples,
            "results": results,
        })
    });
    json!({
        "run-id": result.details.row.run,
        "tags": pairs(&mut result.details.tags.iter(), "name"),
        "common-params": pairs(&mut result.common().iter(), "arg"),
        "metrics": metrics,
        "iterations": iterations.collect::<Vec<_>>(),
    })
}
