//! Metrics of finished runs, pushed once to a collector of OpenTelemetry: OTLP over HTTP, in JSON
//! (<https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md#otlphttp>).
//!
//! The metrics are those that [`crate::exposition`] has, with the same labels as attributes. A point's time is the end
//! of its run: a run that is pushed again gives the same points. What isn't known has no point.

use serde_json::{Value, json};

use crate::StoreError;
use crate::exchange::{Exchange, GivenUp, Request, send_patiently};
use crate::exposition::{FAMILIES, Facts, Family, Labels, is_finished, read};
use crate::read::RunRow;
use crate::store::Store;

/// The path for metrics, where an address has none.
pub const PATH: &str = "/v1/metrics";

/// Most points of a request: some 250 kB, as servers take it that are set up as usual.
pub const MOST_POINTS: usize = 500;

/// A collector may be away or busy so often in a row: half a minute.
const TRIES: u32 = 6;

/// The longest message of a collector that is repeated, in characters.
const LONGEST_MESSAGE: usize = 300;

/// A point of a gauge.
#[derive(Clone, Debug)]
pub struct Point {
    family: &'static Family,
    attributes: Labels,
    time_ns: i64,
    value: f64,
}

/// The points of runs, metric by metric. A run that has not finished has none.
///
/// # Errors
/// Where the store can't be read.
pub fn points(store: &Store, runs: Vec<RunRow>) -> Result<Vec<Point>, StoreError> {
    let finished = runs.into_iter().filter(is_finished);
    let facts = finished.map(|row| read(store, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(points_of(&facts))
}

/// The points of what is told of runs.
pub(crate) fn points_of(facts: &[Facts]) -> Vec<Point> {
    let mut points = Vec::new();
    for family in FAMILIES.iter().filter(|family| family.pushed.is_some()) {
        for facts in facts {
            let Some((ended_ms, time_ns)) = time_of(&facts.row) else { continue };
            let samples = family.samples_of(facts, ended_ms);
            let point = |(attributes, value)| Point { family, attributes, time_ns, value };
            points.extend(samples.into_iter().map(point));
        }
    }
    points
}

/// When a run ended, in milliseconds and nanoseconds since 1970. The protocol has no time before that, and 0 stands for
/// an unknown one.
fn time_of(row: &RunRow) -> Option<(i64, i64)> {
    let ended_ms = row.ended_ms.filter(|ms| *ms > 0)?;
    Some((ended_ms, ended_ms.checked_mul(1_000_000)?))
}

/// The message `ExportMetricsServiceRequest` with these points, which stand metric by metric.
pub fn encode(points: &[Point]) -> String {
    let metrics = points.chunk_by(|a, b| a.family.name == b.family.name).filter_map(|points| {
        let family = points.first()?.family;
        let (name, unit) = family.pushed?;
        let points: Vec<Value> = points.iter().map(encode_point).collect();
        let gauge = json!({ "dataPoints": points });
        let mut metric = json!({ "name": name, "description": family.help, "gauge": gauge });
        if !unit.is_empty() {
            metric["unit"] = unit.into();
        }
        Some(metric)
    });
    let (name, version) = ("linerate", env!("CARGO_PKG_VERSION"));
    let resource = [("service.name", name), ("service.version", version)];
    let resource: Vec<Value> = resource.iter().map(|(key, text)| attribute(key, text)).collect();
    let message = json!({ "resourceMetrics": [{
        "resource": { "attributes": resource },
        "scopeMetrics": [{
            "scope": { "name": name, "version": version },
            "metrics": metrics.collect::<Vec<_>>(),
        }],
    }]});
    message.to_string()
}

fn encode_point(point: &Point) -> Value {
    let attributes: Vec<Value> =
        point.attributes.iter().map(|(key, text)| attribute(key, text)).collect();
    // The JSON of protocol buffers has integers of 64 bits as text.
    let time = point.time_ns.to_string();
    json!({ "timeUnixNano": time, "asDouble": point.value, "attributes": attributes })
}

fn attribute(key: &str, text: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": text } })
}

/// What a collector tells of a request that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Points that it rejected.
    pub rejected: u64,
    /// Its reason, or a warning where it rejected nothing; or empty.
    pub message: String,
}

/// Why points could not be pushed: a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The server can't be reached or is too busy. The same may succeed later.
    #[error("the collector can't be reached: {0}")]
    Away(String),
    /// What answers is not trusted.
    #[error("the collector is not trusted: {0}")]
    Untrusted(String),
    /// The server refuses the request.
    #[error("the collector refuses the metrics: {0}")]
    Refused(String),
    /// What answers is no collector.
    #[error("the collector answers what can't be understood: {0}")]
    Strange(String),
    /// The wait was given up.
    #[error("interrupted; the collector has not got all metrics")]
    Interrupted,
}

/// Sends a request with these points to a path of a collector. A server that is away or busy is asked again a few times.
///
/// # Errors
/// Where the collector doesn't take the request.
pub fn push(
    exchange: &mut impl Exchange,
    path: &str,
    points: &[Point],
) -> Result<Taken, PushError> {
    let body = encode(points);
    let request = Request { method: "POST", path, body: &body };
    let reply = match send_patiently(exchange, &request, TRIES, may_pass) {
        Ok(reply) => reply,
        Err(GivenUp::Away(why)) => return Err(PushError::Away(why)),
        Err(GivenUp::Untrusted(why)) => return Err(PushError::Untrusted(why)),
        Err(GivenUp::Interrupted) => return Err(PushError::Interrupted),
    };
    match reply.status {
        200..=299 => taken(&reply.body).map_err(|why| PushError::Strange(why.to_owned())),
        status => {
            let hint = match status {
                401 => "; give a credential, as docs/metrics.md says",
                403 => "; the credential has not the permission",
                404 => "; give the whole address for metrics, which often ends with /v1/metrics",
                413 => "; raise its limit for the size of a request",
                415 => "; it does not take OTLP in JSON",
                _ => "",
            };
            Err(PushError::Refused(format!("{}{hint}", reply.reason())))
        }
    }
}

/// Whether the same request may succeed later; the protocol forbids to repeat it after any other status.
fn may_pass(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

/// Reads the message `ExportMetricsServiceResponse`. Some servers leave it out where they took everything.
fn taken(body: &str) -> Result<Taken, &'static str> {
    if body.trim().is_empty() {
        return Ok(Taken::default());
    }
    let answer: Value = serde_json::from_str(body).map_err(|_| "its answer is no JSON")?;
    let fields = answer.as_object().ok_or("its answer is no message of OTLP")?;
    let Some(part) = fields.get("partialSuccess").filter(|part| !part.is_null()) else {
        return Ok(Taken::default());
    };
    // A number or its text; a field that is left out has its default, 0.
    let rejected = match &part["rejectedDataPoints"] {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    };
    let rejected = rejected.ok_or("its number of rejected data points is no number")?;
    let message = part["errorMessage"].as_str().unwrap_or_default().trim();
    Ok(Taken { rejected, message: message.chars().take(LONGEST_MESSAGE).collect() })
}
