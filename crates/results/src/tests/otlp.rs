//! Metrics that are pushed: the message that goes out, and what a collector's answers come to.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::T0;
use super::exposition::put;
use crate::exchange::{Exchange, Reply, Request, SendError};
use crate::exposition::{FAMILIES, Facts, LONGEST_LABEL, STATUSES, VERDICTS, last_finished};
use crate::otlp::{MOST_POINTS, PATH, Point, PushError, Taken, encode, points, points_of, push};
use crate::read::{RunOrigin, RunRow};
use crate::store::RunId;
use crate::*;

/// The largest message that a server should take, by the protocol.
const LARGEST_MESSAGE: usize = 20 << 20;

/// A point as a collector reads it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    name: String,
    attributes: BTreeMap<String, String>,
    time_ns: u64,
    value: f64,
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is no text: {value}"))
}

fn attributes(value: &Value) -> BTreeMap<String, String> {
    let list = value["attributes"].as_array().unwrap();
    let pairs = list.iter().map(|one| {
        assert_eq!(one.as_object().unwrap().len(), 2);
        (text(one, "key").to_owned(), text(&one["value"], "stringValue").to_owned())
    });
    let read: BTreeMap<_, _> = pairs.collect();
    assert_eq!(read.len(), list.len(), "a key twice: {value}");
    read
}

/// Reads a message. Panics where it is no `ExportMetricsServiceRequest` in JSON.
fn decode(message: &str) -> Vec<Seen> {
    let message: Value = serde_json::from_str(message).unwrap();
    let [of_resource] = &message["resourceMetrics"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(attributes(&of_resource["resource"])["service.name"], "linerate");
    let [of_scope] = &of_resource["scopeMetrics"].as_array().unwrap()[..] else { panic!() };
    assert_eq!(of_scope["scope"]["name"], "linerate");
    let mut seen = Vec::new();
    for metric in of_scope["metrics"].as_array().unwrap() {
        assert!(!text(metric, "description").is_empty());
        for point in metric["gauge"]["dataPoints"].as_array().unwrap() {
            seen.push(Seen {
                name: text(metric, "name").to_owned(),
                attributes: attributes(point),
                time_ns: text(point, "timeUnixNano").parse().unwrap(),
                value: point["asDouble"].as_f64().unwrap(),
            });
        }
    }
    seen
}

/// The name that Prometheus gives a gauge of OpenTelemetry.
fn name_in_prometheus(name: &str, unit: &str) -> String {
    let unit = match unit {
        "s" => "_seconds",
        unit => {
            assert!(unit.is_empty() || unit.starts_with('{'), "{unit}");
            ""
        }
    };
    format!("{}{unit}", name.replace('.', "_"))
}

#[test]
fn pushed_metrics_have_the_names_of_those_that_are_read() {
    for family in &FAMILIES {
        let Some((name, unit)) = family.pushed else {
            assert_eq!(family.name, "linerate_run_age_seconds");
            continue;
        };
        assert_eq!(name_in_prometheus(name, unit), family.name);
    }
}

fn row() -> RunRow {
    RunRow {
        id: RunId(1),
        run: "0a1b".into(),
        title: "nightly".into(),
        status: "complete".into(),
        partial: false,
        began_ms: T0,
        ended_ms: Some(T0 + 9),
        command: "matrix".into(),
        origin: RunOrigin { harness: "linerate".into(), benchmarks: String::new() },
        version: "1".into(),
        done: 1,
        cells: 2,
        verdict: "doubtful".into(),
    }
}

fn facts() -> impl Strategy<Value = Facts> {
    let columns = (
        ".{0,300}",
        "[a-z]{1,5}",
        proptest::option::of(prop_oneof![T0..T0 + 9, any::<i64>()]),
        proptest::sample::select(&["complete", "failed", "stopped", "running", "?"][..]),
        any::<(u32, u32)>(),
    );
    let labels = || (".{0,300}", ".{0,300}").prop_map(|(a, b)| vec![("metric", a), ("params", b)]);
    let value =
        prop_oneof![any::<f64>(), Just(0.0), Just(8.25)].prop_filter("finite", |v| v.is_finite());
    let results = proptest::collection::vec((labels(), value), 0..4);
    let verdict = proptest::option::of(proptest::sample::select(&VERDICTS[..]));
    (columns, verdict, results).prop_map(
        |((title, command, ended_ms, status, cells), verdict, results)| {
            let ((done, cells), status) = (cells, status.to_owned());
            let row = RunRow { title, status, ended_ms, command, done, cells, ..row() };
            Facts { row, verdict, results }
        },
    )
}

proptest! {
    /// All that is known of a run is told once, at its end, and nothing else is.
    #[test]
    fn a_message_has_what_is_known_and_no_more(all in proptest::collection::vec(facts(), 0..4)) {
        let points = points_of(&all);
        let message = encode(&points);
        prop_assert!(message.len() * MOST_POINTS <= LARGEST_MESSAGE * points.len().max(MOST_POINTS));
        let seen = decode(&message);
        prop_assert_eq!(seen.len(), points.len());
        let timed: Vec<&Facts> = all
            .iter()
            .filter(|facts| facts.row.ended_ms.is_some_and(|ms| ms > 0 && ms <= i64::MAX / 1_000_000))
            .collect();
        let of_status = |facts: &&Facts| STATUSES.contains(&facts.row.status.as_str());
        for (name, expected) in [
            ("linerate.run.info", timed.len()),
            ("linerate.run.cells", timed.len()),
            ("linerate.run.cells_done", timed.len()),
            ("linerate.run.ended_timestamp", timed.len()),
            ("linerate.run.status", 3 * timed.iter().copied().filter(|one| of_status(one)).count()),
            ("linerate.run.verdict", 3 * timed.iter().filter(|facts| facts.verdict.is_some()).count()),
            ("linerate.run.result", timed.iter().map(|facts| facts.results.len()).sum()),
            ("linerate.run.age", 0),
        ] {
            prop_assert_eq!(seen.iter().filter(|point| point.name == name).count(), expected, "{}", name);
        }
        let ends: Vec<u64> = timed.iter().map(|facts| facts.row.ended_ms.unwrap() as u64 * 1_000_000).collect();
        prop_assert!(seen.iter().all(|point| ends.contains(&point.time_ns)));
        let results = timed.iter().flat_map(|facts| &facts.results).map(|(_, value)| *value);
        let told = seen.iter().filter(|point| point.name == "linerate.run.result").map(|point| point.value);
        prop_assert_eq!(told.collect::<Vec<_>>(), results.collect::<Vec<_>>());
        for value in seen.iter().flat_map(|point| point.attributes.values()) {
            prop_assert!(value.chars().count() <= LONGEST_LABEL);
            prop_assert!(value.chars().all(|c| c == '\n' || !c.is_control()));
        }
    }
}

/// A store of a run that has ended and one that has not.
fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("results.db");
    let writer = Writer::open(&path).unwrap();
    put(&writer, "nightly", T0 + 9_000, ["pass", "pass"]);
    put(&writer, "weekly", 0, ["", ""]);
    writer.close().unwrap();
    Store::open_to_read(&path).unwrap()
}

#[test]
fn a_run_is_pushed_as_it_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory);
    let seen = decode(&encode(&points(&store, store.runs().unwrap()).unwrap()));
    let last = last_finished(store.runs().unwrap()).into_values().collect();
    assert_eq!(decode(&encode(&points(&store, last).unwrap())), seen);
    let find = |name: &str, key: &str, value: &str| {
        let is_meant = |point: &&Seen| {
            point.name == name && point.attributes.get(key).map(String::as_str) == Some(value)
        };
        seen.iter().find(is_meant).map(|point| point.value)
    };
    assert_eq!(find("linerate.run.result", "params", "rate=1G"), Some(8.25));
    // The second iteration was not measured.
    assert_eq!(find("linerate.run.result", "params", "rate=5G"), None);
    assert_eq!(find("linerate.run.status", "status", "stopped"), Some(1.0));
    assert_eq!(find("linerate.run.status", "status", "failed"), Some(0.0));
    assert_eq!(find("linerate.run.verdict", "verdict", "pass"), Some(1.0));
    assert_eq!(find("linerate.run.cells_done", "title", "nightly"), Some(2.0));
    assert_eq!(find("linerate.run.info", "title", "weekly"), None);
    assert!(seen.iter().all(|point| point.time_ns == 1_700_000_009_000_000_000));
}

/// A collector that gives these answers, the last one for ever.
#[derive(Default)]
struct Collector {
    answers: Vec<Result<Reply, SendError>>,
    bodies: Vec<String>,
    pauses: Vec<Duration>,
    is_interrupted: bool,
}

impl Exchange for Collector {
    fn send(&mut self, request: &Request<'_>) -> Result<Reply, SendError> {
        assert_eq!((request.method, request.path), ("POST", PATH));
        self.bodies.push(request.body.to_owned());
        let next = (self.bodies.len() - 1).min(self.answers.len() - 1);
        self.answers[next].clone()
    }

    fn pause(&mut self, time: Duration) -> bool {
        self.pauses.push(time);
        !self.is_interrupted
    }
}

fn answer(status: u16, body: &str) -> Result<Reply, SendError> {
    Ok(Reply { status, retry_after: None, body: body.to_owned() })
}

fn some_points() -> Vec<Point> {
    points_of(&[Facts { row: row(), verdict: None, results: Vec::new() }])
}

fn told(answers: Vec<Result<Reply, SendError>>) -> (Result<Taken, PushError>, Collector) {
    let mut collector = Collector { answers, ..Collector::default() };
    (push(&mut collector, PATH, &some_points()), collector)
}

#[test]
fn what_a_collector_rejects_is_told() {
    for (body, rejected, message) in [
        ("", 0, ""),
        ("{}", 0, ""),
        (r#"{"partialSuccess":null}"#, 0, ""),
        (r#"{"partialSuccess":{}}"#, 0, ""),
        (r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#, 3, "too old"),
        (r#"{"partialSuccess":{"rejectedDataPoints":4}}"#, 4, ""),
        (r#"{"partialSuccess":{"errorMessage":"use gzip"}}"#, 0, "use gzip"),
    ] {
        let (told, collector) = told(vec![answer(200, body)]);
        assert_eq!(told, Ok(Taken { rejected, message: message.to_owned() }), "{body}");
        // A message that was taken in part is not sent again.
        assert_eq!(collector.bodies.len(), 1);
    }
    for body in ["<html>", "[]", r#"{"partialSuccess":{"rejectedDataPoints":-1}}"#] {
        let (told, _) = told(vec![answer(200, body)]);
        assert!(matches!(told, Err(PushError::Strange(_))), "{body}: {told:?}");
    }
}

#[test]
fn a_busy_collector_is_asked_again_a_few_times() {
    let busy = |status, seconds| {
        let retry_after = Some(Duration::from_secs(seconds));
        Ok(Reply { status, retry_after, body: "full".to_owned() })
    };
    let cut = || Err(SendError::Away("cut".to_owned()));
    let (ended, collector) = told(vec![busy(429, 7), busy(503, 0), cut(), answer(200, "{}")]);
    assert_eq!(ended, Ok(Taken::default()));
    assert_eq!(collector.pauses, [7, 2, 4].map(Duration::from_secs));
    assert!(collector.bodies.iter().all(|body| *body == collector.bodies[0]));
    let (ended, collector) = told(vec![busy(503, u64::MAX)]);
    assert_eq!(ended, Err(PushError::Away("HTTP status 503, full".to_owned())));
    assert_eq!((collector.bodies.len(), collector.pauses.len()), (6, 5));
    assert!(collector.pauses.iter().all(|pause| *pause == Duration::from_secs(60)));
    let untrusted = SendError::Untrusted("another's".to_owned());
    let (ended, collector) = told(vec![Err(untrusted)]);
    assert_eq!(ended, Err(PushError::Untrusted("another's".to_owned())));
    assert_eq!(collector.pauses, []);
    let mut collector =
        Collector { answers: vec![cut()], is_interrupted: true, ..Collector::default() };
    assert_eq!(push(&mut collector, PATH, &some_points()), Err(PushError::Interrupted));
}

#[test]
fn a_refusal_is_final() {
    for (status, body, part) in [
        (400, r#"{"message":"bad name"}"#, "HTTP status 400, bad name"),
        (401, "", "docs/metrics.md"),
        (404, "no page", "/v1/metrics"),
        (413, "", "limit"),
        (500, "", "HTTP status 500"),
        (302, "", "HTTP status 302"),
    ] {
        let (ended, collector) = told(vec![answer(status, body)]);
        let Err(PushError::Refused(why)) = &ended else { panic!("{status}: {ended:?}") };
        assert!(why.contains(part), "{why}");
        assert_eq!(collector.bodies.len(), 1, "{status}");
    }
}
