//! The figures of a run that a threshold can name.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Run;
use crate::hunt::{HuntRecord, RateUnit};
use crate::metric::{self, Combine, HUNTED, METRICS, Metric};
use crate::plan::{Kind, Transport, Workload};
use crate::summary::Summary;

/// The parts of a distribution.
const PARTS: [&str; 10] =
    ["count", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "max"];
/// The parts of [`metric::DATAGRAMS`].
const DATAGRAM_PARTS: [&str; 8] =
    ["sent", "refused", "received", "lost", "duplicated", "reordered", "late", "dropped_by_socket"];
/// The parts of [`metric::FRAMES`].
const FRAME_PARTS: [&str; 4] = ["sent", "completed", "late", "dropped"];
/// The parts of [`metric::CPU`].
const CPU_PARTS: [&str; 2] = ["client", "server"];

/// The figures of a run: those of its summary; of a hunt, whose summary is that of one trial, the rate that it found.
pub fn figures_of_run(run: &Run) -> BTreeMap<String, f64> {
    match run.hunt.as_deref() {
        None => figures(&run.summary),
        Some(hunt) => figures_of_hunt(hunt),
    }
}

fn figures_of_hunt(hunt: &HuntRecord) -> BTreeMap<String, f64> {
    let found =
        hunt.outcome.rate().map(|rate| (hunted(hunt.goal.unit).name.to_owned(), rate as f64));
    found.into_iter().collect()
}

/// The metric that a hunt finds.
pub fn hunted(unit: RateUnit) -> Metric {
    match unit {
        RateUnit::BitsPerSecond => metric::HUNT_RATE_BPS,
        RateUnit::RequestsPerSecond => metric::HUNT_RATE_PER_S,
    }
}

/// Every figure of a summary by its name: a field, or a part of one (`latency_p99_ns`, `datagrams_lost`). `errors` is
/// the sum over all kinds, and 0 where there is none.
pub fn figures(summary: &Summary) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let value = serde_json::to_value(summary).unwrap_or_default();
    for (name, value) in value.as_object().into_iter().flatten() {
        match (value, METRICS.iter().find(|metric| metric.name == name)) {
            (Value::Number(number), _) => {
                figures.extend(number.as_f64().map(|number| (name.clone(), number)));
            }
            // Kinds of errors are a peer's words, not figures.
            (Value::Object(parts), Some(metric)) if *metric != metric::ERRORS => {
                add_parts(metric, parts, &mut figures)
            }
            _ => {}
        }
    }
    let errors: u64 = summary.errors.values().fold(0, |sum, count| sum.saturating_add(*count));
    figures.insert(metric::ERRORS.name.to_owned(), errors as f64);
    figures
}

fn add_parts(metric: &Metric, parts: &Map<String, Value>, figures: &mut BTreeMap<String, f64>) {
    for (part, value) in parts {
        match value {
            Value::Number(number) => {
                figures.extend(number.as_f64().map(|number| (metric.part(part), number)));
            }
            // The frames among the counts of datagrams.
            Value::Object(inner) if *metric == metric::DATAGRAMS && part == "frames" => {
                add_parts(&metric::FRAMES, inner, figures);
            }
            // The processor time of an end, in both modes.
            Value::Object(modes) => {
                let sum = modes.values().filter_map(Value::as_f64).sum();
                figures.insert(metric.part(part), sum);
            }
            _ => {}
        }
    }
}

/// The metric that a figure is, or is a part of.
pub fn metric_of(figure: &str) -> Option<&'static Metric> {
    METRICS.iter().chain(&HUNTED).find(|metric| names_of(metric).iter().any(|name| name == figure))
}

fn names_of(metric: &Metric) -> Vec<String> {
    let parts = |parts: &[&str]| parts.iter().map(|part| metric.part(part)).collect();
    match metric {
        metric if metric.over_flows == Combine::Merge => parts(&PARTS),
        metric if *metric == metric::DATAGRAMS => parts(&DATAGRAM_PARTS),
        metric if *metric == metric::FRAMES => parts(&FRAME_PARTS),
        metric if *metric == metric::CPU => parts(&CPU_PARTS),
        metric => vec![metric.name.to_owned()],
    }
}

/// The names of the figures that a workload can have; of `None`, a workload that isn't known, of any.
pub fn figures_of(workload: Option<&Workload>) -> Vec<String> {
    let has = |metric: &&Metric| workload.is_none_or(|workload| can_have(workload, metric));
    METRICS.iter().filter(has).flat_map(names_of).collect()
}

const STREAMS: &[Metric] = &[
    metric::GOODPUT,
    metric::GOODPUT_UP,
    metric::GOODPUT_DOWN,
    metric::SENT_RATE,
    metric::RECEIVED_BYTES,
    metric::SENT_BYTES,
    metric::BYTES_PER_SEND,
    metric::BYTES_PER_RECEIVE,
    metric::CPU_PER_GB,
    metric::VERIFIED_BYTES,
    metric::WRONG_BYTES,
    metric::FAIRNESS,
];
const DATAGRAM_STREAMS: &[Metric] =
    &[metric::DATAGRAMS, metric::DATAGRAMS_PER_S, metric::LOSS_RATIO, metric::JITTER];
const MEDIA: &[Metric] = &[metric::FRAMES, metric::DELAY_VARIATION, metric::SEND_DELAY];
const TRANSACTIONS: &[Metric] = &[
    metric::TRANSACTIONS,
    metric::TRANSACTIONS_LOST,
    metric::TRANSACTIONS_UNSENT,
    metric::LATENCY,
    metric::SERVICE,
    metric::CPU_PER_TRANSACTION,
];
const CONNECTIONS: &[Metric] =
    &[metric::CONNECTIONS_PER_S, metric::ESTABLISHMENT, metric::FIRST_BYTE];

fn can_have(workload: &Workload, metric: &Metric) -> bool {
    let always = [metric::ELAPSED, metric::CPU, metric::ERRORS];
    let over_tcp = matches!(workload.transport, Transport::Tcp | Transport::Tls);
    let of_kind = match &workload.kind {
        Kind::Stream { .. } => {
            let datagrams = workload.has_datagrams();
            STREAMS.contains(metric)
                || datagrams && DATAGRAM_STREAMS.contains(metric)
                || datagrams && MEDIA.contains(metric)
                || over_tcp && *metric == metric::RETRANSMITS
        }
        Kind::Rr { .. } => {
            let further = [metric::TRANSACTIONS_PER_S, metric::FAIRNESS];
            TRANSACTIONS.contains(metric)
                || further.contains(metric)
                || over_tcp && *metric == metric::RETRANSMITS
        }
        Kind::Connect { .. } => TRANSACTIONS.contains(metric) || CONNECTIONS.contains(metric),
    };
    of_kind || always.contains(metric)
}
