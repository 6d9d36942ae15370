//! A stored run as JSON.

use linerate_results::compare::Mean;
use linerate_results::read::{RunDetails, SampleRow};
use linerate_results::values::{Values, worst_verdict};
use linerate_results::{Store, StoreError};
use serde_json::{Value, json};

/// All of a run but its documents and series, as JSON.
pub(in crate::commands) fn run_json(
    store: &Store,
    details: &RunDetails,
    values: &Values,
) -> Result<Value, StoreError> {
    let all = details.iterations.iter().zip(&values.samples).zip(&values.units);
    let iterations = all.map(|((iteration, values), unit)| {
        let samples = iteration.samples.iter().zip(values);
        let samples = samples.map(|(sample, value)| sample_json(sample, *value));
        let params = iteration.params.iter().map(|param| {
            json!({ "arg": param.arg, "value": param.value, "role": param.role, "engines": param.engines })
        });
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        json!({
            "num": iteration.num,
            "iteration": iteration.uuid,
            "status": iteration.status,
            "params": params.collect::<Vec<_>>(),
            "primary_metric": iteration.primary_metric,
            "unit": unit,
            "mean": Mean::of(&known),
            "verdict": worst_verdict(&iteration.samples),
            "samples": samples.collect::<Vec<_>>(),
        })
    });
    let hosts = details.hosts.iter().map(|host| {
        json!({
            "name": host.name,
            "transport": host.transport,
            "facts": serde_json::from_str::<Value>(&host.facts).unwrap_or_default(),
            "offset_ns": host.offset_ns,
            "bound_ns": host.bound_ns,
        })
    });
    let notes = details.notes.iter();
    let notes = notes.map(|(position, text)| json!({ "position": position, "text": text }));
    let tags = details.tags.iter().map(|(name, value)| (name.clone(), json!(value)));
    Ok(json!({
        "run": details.row,
        "tags": tags.collect::<serde_json::Map<_, _>>(),
        "plan": serde_json::from_str::<Value>(&details.plan).unwrap_or_default(),
        "hosts": hosts.collect::<Vec<_>>(),
        "notes": notes.collect::<Vec<_>>(),
        "metrics": store.metrics(details.row.id)?,
        "iterations": iterations.collect::<Vec<_>>(),
    }))
}

fn sample_json(sample: &SampleRow, value: Option<f64>) -> Value {
    json!({
        "num": sample.num,
        "sample": sample.uuid,
        "status": sample.status,
        "position": sample.position,
        "reason": sample.reason,
        "exit_code": sample.exit_code,
        "period": sample.period.as_ref().map(|period| json!({
            "period": period.uuid,
            "begin_ms": period.span.begin_ms,
            "end_ms": period.span.end_ms,
        })),
        "value": value,
        "verdict": sample.verdict(),
        "why": sample.outcome.as_ref().map(|outcome| outcome.why.as_str()).unwrap_or_default(),
    })
}
