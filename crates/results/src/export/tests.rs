//! Documents of runs, written to a server that stands in the test and does as it is told.

mod outbox;
mod stand_in;

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use linerate_measure::window::Span;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{Index, IndexError};
use super::document::{Document, Form, Maker, Thinning};
use super::indexed::{Points, Wanted, only_run, read_runs};
use super::mapping::{NAMES, creation, mapping, missing, type_of};
use super::outbox::{deliver, parts, retry_refused, waiting_of, write_run};
use super::{CdmVersion, DocumentKind};
use crate::exchange::{Reply, SendError};
use crate::points::{Point, SeriesHead};
use crate::query::SeriesQuery;
use crate::read::RunDetails;
use crate::tests::{T0, cell, new_run};
use crate::*;
use stand_in::{Failure, StandIn, accept, answer};

/// As a client has it whose server fails often.
const TRIES: u32 = 5;

fn writer(directory: &TempDir) -> (Writer, RunId, String) {
    let writer = Writer::open(&directory.path().join("s.db")).unwrap();
    let (run, name) = writer.begin_run(NewRun { seed: Some(1), ..new_run(4) }).unwrap();
    (writer, run, name)
}

fn end_cells(writer: &Writer, run: RunId, positions: std::ops::Range<u32>) {
    for position in positions {
        let attempt = writer.begin_cell(run, position, T0).unwrap();
        let values = [1.0, 2.0, 2.0, 4.0].map(|value| value + f64::from(position));
        writer.end_cell(attempt, cell(i64::from(position) * 10, values)).unwrap();
    }
}

fn end_run(writer: &Writer, run: RunId) {
    let end = RunEnd {
        status: RunStatus::Complete,
        partial: false,
        ended_ms: T0 + 60_000,
        iterations: vec![(0, "pass".into())],
    };
    writer.end_run(run, end).unwrap();
}

fn whole(directory: &TempDir) -> (Store, RunId) {
    let (writer, run, _) = writer(directory);
    end_cells(&writer, run, 0..4);
    end_run(&writer, run);
    writer.close().unwrap();
    (Store::open(&directory.path().join("s.db")).unwrap(), run)
}

fn open(stand_in: &StandIn) -> Index<StandIn> {
    Index::open(stand_in.clone(), None, TRIES).unwrap()
}

fn value(store: &Store, run: RunId, resolution: u32) -> Vec<f64> {
    let query = SeriesQuery { resolution, ..SeriesQuery::new(run, "linerate", "rx-Gbps") };
    let answer = store.query(&query).unwrap();
    answer.groups[0].windows.iter().map(|window| window.value.unwrap()).collect()
}

#[test]
fn versions_and_indices_have_the_names_of_the_model() {
    let index = |version: CdmVersion, kind| version.index(kind, T0);
    assert_eq!(index(CdmVersion::V10, DocumentKind::Run), "cdm-v10dev-run@2023.11");
    assert_eq!(index(CdmVersion::V8, DocumentKind::MetricData), "cdmv8dev-metric_data");
    assert_eq!(CdmVersion::V9.indices(DocumentKind::Tag), "cdm-v9dev-tag@*");
    for version in CdmVersion::ALL {
        assert_eq!(CdmVersion::of_name(version.name()), Some(version));
        for kind in DocumentKind::ALL {
            assert_eq!(CdmVersion::of_index(&index(version, kind)), Some(version));
        }
    }
    assert_eq!(CdmVersion::of_index("cdm-v11dev-run@2023.11"), None);
    assert_eq!(CdmVersion::V7.id_path(DocumentKind::Run), "run.id");
    assert_eq!(CdmVersion::V8.id_path(DocumentKind::MetricDesc), "metric_desc.metric_desc-uuid");
}

/// All paths of a document that its index has no field for.
fn unknown(mapping: &Value, document: &Value, path: &str) -> Vec<String> {
    let fields = document.as_object().unwrap();
    let of_field = fields.iter().flat_map(|(name, value)| {
        let path = format!("{path}.{name}");
        match (&mapping["properties"][name], value) {
            (Value::Null, _) => vec![path],
            (known, Value::Object(_)) => unknown(known, value, &path),
            _ => vec![],
        }
    });
    of_field.collect()
}

#[test]
fn every_document_fits_the_strict_mapping_of_its_index() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    for version in CdmVersion::ALL {
        let stand_in = StandIn::default();
        let mut index = Index::open(stand_in.clone(), Some(version), TRIES).unwrap();
        write_run(&store, &mut index, run, &Form::default()).unwrap();
        let documents = stand_in.documents();
        // 1 run, 1 tag, 2 iterations, 2 params, 4 samples, 4 periods, 8 series with 3 points each.
        assert_eq!(documents.len(), 1 + 1 + 2 + 2 + 4 + 4 + 8 + 24, "{version:?}");
        for ((name, _), body) in documents {
            let kind = DocumentKind::ALL.into_iter().find(|kind| version.index(*kind, T0) == name);
            let strange = unknown(&mapping(kind.unwrap(), version), &body, "");
            assert_eq!(strange, Vec::<String>::new(), "{name}");
            assert_eq!(body["cdm"]["ver"], version.name());
        }
    }
}

#[test]
fn a_run_that_is_written_again_replaces_itself() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    let first = stand_in.documents();
    let written = index.take_written();
    assert_eq!((written.created, written.updated), (first.len() as u64, 0));
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    let written = index.take_written();
    assert_eq!((written.created, written.updated), (0, first.len() as u64));
    assert_eq!(stand_in.documents(), first);
    // Half as many points: those of before are gone.
    let form = Form { hz: Some(0.5), sources: vec!["linerate".into()] };
    write_run(&store, &mut index, run, &form).unwrap();
    let count =
        |of: &str| stand_in.documents().keys().filter(|(name, _)| name.contains(of)).count();
    assert_eq!((count("metric_desc"), count("metric_data")), (8, 16));
    let form = Form { hz: None, sources: vec!["mpstat".into()] };
    write_run(&store, &mut index, run, &form).unwrap();
    assert_eq!((count("metric_desc"), count("metric_data"), count("-run@")), (0, 0, 1));
}

#[test]
fn indices_are_made_before_the_first_document() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let stand_in = StandIn::default();
    write_run(&store, &mut open(&stand_in), run, &Form::default()).unwrap();
    let requests = stand_in.requests();
    let first_bulk = requests.iter().position(|line| line.starts_with("POST /_bulk")).unwrap();
    let made = requests[..first_bulk].iter().filter(|line| line.starts_with("PUT /cdm-v10dev-"));
    assert_eq!(made.count(), 8);
    let settings = creation(DocumentKind::Run, CdmVersion::V10);
    assert_eq!(settings["mappings"]["dynamic"], "strict");
    assert_eq!(NAMES.iter().collect::<BTreeSet<_>>().len(), NAMES.len());
}

#[test]
fn an_index_that_is_there_is_completed_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let stand_in = StandIn::default();
    let lacking = json!({ "mappings": { "properties": {
        "run": { "properties": { "run-uuid": { "type": "keyword" } } } } } });
    stand_in.add_index("cdm-v10dev-run@2023.11", lacking);
    write_run(&store, &mut open(&stand_in), run, &Form::default()).unwrap();
    let added = stand_in.requests().into_iter().filter(|line| line.contains("/_mapping")).count();
    assert_eq!(added, 2, "asked, and completed");
    let other = StandIn::default();
    // As a server guesses it where nobody made the index.
    let guessed = json!({ "mappings": { "properties": {
        "run": { "properties": { "run-uuid": { "type": "text" } } } } } });
    other.add_index("cdm-v10dev-run@2023.11", guessed);
    let error = write_run(&store, &mut open(&other), run, &Form::default()).unwrap_err();
    let said = "its field run.run-uuid is of type text and not keyword";
    assert!(error.to_string().contains(said) && error.to_string().contains("--cdm"), "{error}");
    let whole = mapping(DocumentKind::Run, CdmVersion::V10);
    assert_eq!(missing(&whole, &whole), Ok(None));
}

#[test]
fn fields_have_the_types_of_their_mapping() {
    let metric_data = mapping(DocumentKind::MetricData, CdmVersion::V10);
    let types = ["metric_data.begin", "metric_data.duration", "run.run-uuid", "run.none", "none"]
        .map(|path| type_of(&metric_data, path));
    assert_eq!(types, ["date", "long", "keyword", "keyword", "keyword"]);
}

#[test]
fn the_version_is_the_newest_that_the_server_has() {
    let stand_in = StandIn::default();
    assert_eq!(open(&stand_in).version(), CdmVersion::V10);
    stand_in.add_index("cdmv8dev-run", json!({}));
    stand_in.add_index("cdm-v9dev-run@2023.01", json!({}));
    assert_eq!(open(&stand_in).version(), CdmVersion::V9);
    let asked = Index::open(stand_in, Some(CdmVersion::V7), TRIES).unwrap();
    assert_eq!(asked.version(), CdmVersion::V7);
}

#[test]
fn a_busy_server_gets_everything_once() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let calm = StandIn::default();
    write_run(&store, &mut open(&calm), run, &Form::default()).unwrap();
    let failures: [(&str, Failure); 5] = [
        ("away", |_| Some(Err(SendError::Away("connection refused".into())))),
        ("busy", |_| {
            let busy = answer(429, r#"{"error":{"reason":"too many"}}"#);
            Some(Ok(Reply { retry_after: Some(Duration::from_secs(7)), ..busy }))
        }),
        ("closed", |_| Some(Ok(answer(503, "")))),
        // Of each bulk one document is taken, the others are told off.
        ("half", |body| {
            let documents = body.lines().count() / 2;
            let item = |at| match at {
                0 => json!({ "index": { "status": 201 } }),
                _ => {
                    json!({ "index": { "status": 429, "error": { "type": "rejected", "reason": "queue" } } })
                }
            };
            let items: Vec<Value> = (0..documents).map(item).collect();
            Some(Ok(answer(200, &json!({ "errors": true, "items": items }).to_string())))
        }),
        ("full disk", |body| {
            let error = json!({ "type": "cluster_block_exception", "reason": "flood" });
            let items = vec![
                json!({ "index": { "status": 403, "error": error } });
                body.lines().count() / 2
            ];
            Some(Ok(answer(200, &json!({ "errors": true, "items": items }).to_string())))
        }),
    ];
    for (what, failure) in failures {
        let stand_in = StandIn::default();
        let mut index = open(&stand_in);
        stand_in.fail("/_bulk", 3, failure);
        write_run(&store, &mut index, run, &Form::default()).unwrap();
        let mut expected = calm.documents();
        if what == "half" {
            // The stand-in has not kept what it said that it took.
            let kept = stand_in.documents();
            expected.retain(|key, _| kept.contains_key(key));
            assert_eq!(calm.documents().len() - kept.len(), 3);
        }
        assert_eq!(stand_in.documents(), expected, "{what}");
        assert_eq!(index.written().refused, 0, "{what}");
        let pauses = stand_in.pauses();
        assert_eq!(pauses.len(), 3, "{what}: {pauses:?}");
        if what == "busy" {
            assert!(pauses.iter().all(|pause| *pause >= Duration::from_secs(7)), "{pauses:?}");
        }
        let gone = StandIn::default();
        let mut index = open(&gone);
        gone.fail("/_bulk", usize::MAX, failure);
        if what != "half" {
            let error = write_run(&store, &mut index, run, &Form::default()).unwrap_err();
            assert!(matches!(error, IndexError::Away(_)), "{what}: {error}");
            assert_eq!(gone.pauses().len() as u32, TRIES - 1, "{what}");
        }
    }
}

#[test]
fn a_request_that_is_too_large_is_halved() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    stand_in.fail("/_bulk", usize::MAX, |body| match body.lines().count() / 2 {
        0..=3 => accept(),
        _ => Some(Ok(answer(413, "too large"))),
    });
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    assert_eq!(stand_in.documents().len(), 46);
    // One that is too large by itself is named.
    stand_in.fail("/_bulk", usize::MAX, |body| match body.contains("\"tag\":") {
        true => Some(Ok(answer(413, "too large"))),
        false => accept(),
    });
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    let written = index.take_written();
    assert_eq!(written.refused, 1);
    assert!(written.refusals[0].contains("cdm-v10dev-tag@2023.11"), "{written:?}");
    assert!(written.refusals[0].contains("HTTP status 413, too large"), "{written:?}");
}

#[test]
fn what_no_retry_mends_is_told_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    for (status, word) in [(401, "credential"), (403, "permission"), (400, "no such")] {
        let stand_in = StandIn::default();
        let mut index = open(&stand_in);
        stand_in.fail(
            "/_bulk",
            1,
            match status {
                401 => |_: &str| Some(Ok(answer(401, "Unauthorized"))),
                403 => |_: &str| Some(Ok(answer(403, "{}"))),
                _ => |_: &str| Some(Ok(answer(400, r#"{"error":{"reason":"no such thing"}}"#))),
            },
        );
        let error = write_run(&store, &mut index, run, &Form::default()).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert_eq!(stand_in.pauses(), []);
    }
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    stand_in.fail("/_bulk", 1, |_| Some(Err(SendError::Untrusted("another's".into()))));
    let error = write_run(&store, &mut index, run, &Form::default()).unwrap_err();
    assert_eq!(error.to_string(), "the index is not trusted: another's");
    assert_eq!(stand_in.pauses(), []);
    let stand_in = StandIn::default();
    stand_in.fail("/", 1, |_| Some(Ok(answer(200, "<html>"))));
    assert!(matches!(Index::open(stand_in, None, 1), Err(IndexError::Strange(_))));
}

#[test]
fn a_server_without_unsigned_numbers_gets_signed_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let kinds = |stand_in: &StandIn, name: &str| {
        let content = stand_in.index(&format!("cdm-v10dev-{name}@2023.11"));
        let fields = content["mappings"]["properties"][name]["properties"].clone();
        fields["num"]["type"].as_str().unwrap_or("none").to_owned()
    };
    let calm = StandIn::default();
    write_run(&store, &mut open(&calm), run, &Form::default()).unwrap();
    assert_eq!(kinds(&calm, "iteration"), "unsigned_long");
    let old = StandIn::default();
    old.lack("unsigned_long");
    write_run(&store, &mut open(&old), run, &Form::default()).unwrap();
    assert_eq!((kinds(&old, "iteration"), kinds(&old, "sample")), ("long".into(), "long".into()));
    assert_eq!(old.documents(), calm.documents());
    // The server is asked once for the type: two of eight indices of an empty server have it first.
    let puts = old.requests().iter().filter(|asked| asked.starts_with("PUT ")).count();
    assert_eq!(puts, DocumentKind::ALL.len() + 1);
    // An index that is there gets what it lacks in the same way.
    let old = StandIn::default();
    old.lack("unsigned_long");
    old.add_index("cdm-v10dev-iteration@2023.11", json!({ "mappings": {} }));
    write_run(&store, &mut open(&old), run, &Form::default()).unwrap();
    assert_eq!(kinds(&old, "iteration"), "long");
    assert_eq!(old.documents(), calm.documents());
}

#[test]
fn a_run_of_another_writer_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    stand_in.change_documents(|document| {
        if let Some(source) = document.pointer_mut("/run/source") {
            *source = "host:/var/lib/crucible/run".into();
        }
    });
    let before = stand_in.documents();
    let error = write_run(&store, &mut index, run, &Form::default()).unwrap_err();
    assert!(error.to_string().contains("another writer"), "{error}");
    assert_eq!(stand_in.documents(), before);
}

#[test]
fn an_answer_that_is_not_whole_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let search =
        "/cdm-v10dev-run@*/_search?ignore_unavailable=true&allow_partial_search_results=false";
    let failures: [(Failure, &str); 2] = [
        (
            |_| {
                let part = r#"{"_shards":{"failed":1,"failures":[{"reason":{"reason":"gone"}}]}}"#;
                Some(Ok(answer(200, part)))
            },
            "1 of its shards did not answer a search: gone",
        ),
        (|_| Some(Ok(answer(200, r#"{"timed_out":true}"#))), "took too long"),
    ];
    for (failure, said) in failures {
        let stand_in = StandIn::default();
        let mut index = open(&stand_in);
        stand_in.fail(search, 1, failure);
        let error = write_run(&store, &mut index, run, &Form::default()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let stand_in = StandIn::default();
    let mut index = open(&stand_in);
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    let path = "/cdm-v10dev-metric_data@2023.11/_delete_by_query?conflicts=proceed&refresh=true";
    stand_in.fail(path, 1, |_| {
        Some(Ok(answer(200, r#"{"failures":[{"cause":{"reason":"blocked"}}]}"#)))
    });
    let error = index.delete_series(&store.row(run).unwrap().run).unwrap_err();
    assert!(error.to_string().contains("blocked"), "{error}");
}

#[test]
fn a_run_stays_in_the_month_of_its_begin() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Writer::open(&directory.path().join("s.db")).unwrap();
    // 31 January 2026, 23:59:50 UTC; its cells end in February.
    let began_ms = 1_769_903_990_000;
    let (run, _) = writer.begin_run(NewRun { began_ms, ..new_run(1) }).unwrap();
    writer.index_to(run, "http://index", None).unwrap();
    let attempt = writer.begin_cell(run, 0, began_ms).unwrap();
    writer.end_cell(attempt, cell((began_ms - T0) / 1000 + 20, [1.0, 2.0, 3.0, 4.0])).unwrap();
    writer.close().unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let stand_in = StandIn::default();
    deliver(&store, &mut open(&stand_in), "http://index").unwrap();
    let documents = stand_in.documents();
    assert!(documents.len() > 10);
    assert!(documents.keys().all(|(name, _)| name.ends_with("@2026.01")), "{documents:?}");
}

#[test]
fn what_an_index_has_answers_as_the_store_does() {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let row = store.row(run).unwrap();
    for version in CdmVersion::ALL {
        let stand_in = StandIn::default();
        let mut index = Index::open(stand_in.clone(), Some(version), TRIES).unwrap();
        write_run(&store, &mut index, run, &Form::default()).unwrap();
        let points = Points::Of("linerate".into(), "rx-Gbps".into());
        let read = read_runs(&mut index, &Wanted::Run(row.run.clone()), &points).unwrap();
        let id = only_run(&read).unwrap();
        let (own, of_index) = (store.details(run).unwrap(), read.details(id).unwrap());
        assert_eq!(of_index.tags, own.tags);
        let parts = |details: &RunDetails| -> Vec<_> {
            let iterations = details.iterations.iter();
            let samples =
                iterations.flat_map(|one| one.samples.iter().map(move |sample| (one, sample)));
            let named = samples.map(|(one, sample)| {
                let params: Vec<_> =
                    one.params.iter().map(|p| (p.arg.clone(), p.value.clone())).collect();
                (one.uuid.clone(), params, sample.uuid.clone(), sample.period.clone(), sample.num)
            });
            named.collect()
        };
        assert_eq!(parts(&of_index), parts(&own), "{version:?}");
        assert_eq!(value(&read, id, 7), value(&store, run, 7), "{version:?}");
        let period = own.iterations[1].samples[1].period.clone().unwrap();
        let by_period =
            read_runs(&mut index, &Wanted::Period(period.uuid.clone()), &points).unwrap();
        let query = SeriesQuery {
            period: Some(period.uuid),
            compat: true,
            ..SeriesQuery::new(only_run(&by_period).unwrap(), "linerate", "rx-Gbps")
        };
        let asked = SeriesQuery { run, ..query.clone() };
        let of_index = by_period.query(&query).unwrap();
        assert_eq!(of_index.groups, store.query(&asked).unwrap().groups);
        let none = read_runs(&mut index, &Wanted::Run("none".into()), &Points::Primary);
        assert!(none.unwrap_err().to_string().contains("no run of exactly the name 'none'"));
    }
}

#[test]
fn an_answer_of_an_index_adds_no_quirks_of_iperfs_figures() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, run, _) = writer(&directory);
    for position in 0..4 {
        let attempt = writer.begin_cell(run, position, T0).unwrap();
        let mut end = cell(i64::from(position) * 10, [2.0; 4]);
        for series in &mut end.series {
            (series.source, series.metric) = ("iperf".into(), "rx-pps".into());
        }
        writer.end_cell(attempt, end).unwrap();
    }
    end_run(&writer, run);
    writer.close().unwrap();
    let store = Store::open(&directory.path().join("s.db")).unwrap();
    let mut index = open(&StandIn::default());
    write_run(&store, &mut index, run, &Form::default()).unwrap();
    let wanted = Wanted::Run(store.row(run).unwrap().run);
    let points = Points::Of("iperf".into(), "rx-pps".into());
    let read = read_runs(&mut index, &wanted, &points).unwrap();
    let value = |store: &Store, run, compat| {
        let query = SeriesQuery { compat, ..SeriesQuery::new(run, "iperf", "rx-pps") };
        store.query(&query).unwrap().groups[0].windows[0].value.unwrap()
    };
    let of_index = only_run(&read).unwrap();
    let (plain, compat) = (value(&read, of_index, false), value(&read, of_index, true));
    assert!((compat / plain - 1.0).abs() < 0.01, "{plain} and {compat}");
}

fn points() -> impl Strategy<Value = Vec<(Span, f64)>> {
    let one = (1i64..2000, prop_oneof![Just(0i64), 1i64..500], 0u8..3);
    proptest::collection::vec(one, 0..60).prop_map(|steps| {
        let mut at = T0;
        let make = |(length, gap, value): (i64, i64, u8)| {
            let span = Span::new(at + gap, at + gap + length - 1).unwrap();
            at = span.end_ms + 1;
            (span, f64::from(value))
        };
        steps.into_iter().map(make).collect()
    })
}

/// A run with one series of its first cell.
static ONE_SERIES: LazyLock<(RunDetails, SeriesHead, Vec<Point>)> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let (store, run) = whole(&directory);
    let mut all = Vec::new();
    let read: Result<(), StoreError> = store.each_series_of_cell(run, 0, |series| {
        let mut points = Vec::new();
        series.each_part(|part| {
            points.extend_from_slice(part);
            Ok::<_, StoreError>(())
        })?;
        all.push((series.head.clone(), points));
        Ok(())
    });
    read.unwrap();
    let (head, points) = all.remove(0);
    (store.details(run).unwrap(), head, points)
});

fn thinned(points: &[Point], aggregation: Aggregation, hz: Option<f64>) -> Vec<Point> {
    let mut thin = Vec::new();
    let mut thinning = Thinning::new(aggregation, hz);
    let mut give = |point| {
        thin.push(point);
        Ok::<_, StoreError>(())
    };
    points.iter().for_each(|point| thinning.push(*point, &mut give).unwrap());
    thinning.finish(&mut give).unwrap();
    thin
}

fn weight(points: &[(Span, f64)]) -> f64 {
    points.iter().map(|(span, value)| span.length_ms() as f64 * value).sum()
}

proptest! {
    #[test]
    fn thinning_keeps_sums_and_times(points in points(), hz in proptest::option::of(0.1f64..5.0)) {
        let thin = thinned(&points, Aggregation::Sum, hz);
        prop_assert!(thin.len() <= points.len());
        prop_assert!((weight(&thin) - weight(&points)).abs() <= 1e-6 * weight(&points).max(1.0));
        let covered = |points: &[(Span, f64)]| -> i64 {
            points.iter().map(|(span, _)| span.length_ms()).sum()
        };
        prop_assert_eq!(covered(&thin), covered(&points));
        for pair in thin.windows(2) {
            prop_assert!(pair[0].0.end_ms < pair[1].0.begin_ms);
        }
        let most = |points: &[(Span, f64)]| {
            points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
        };
        prop_assert_eq!(most(&thinned(&points, Aggregation::Max, hz)), most(&points));
    }

    #[test]
    fn any_label_finds_a_name_of_the_mapping(
        labels in proptest::collection::btree_map("[a-z]{1,6}|num|flow|stream|cpu|metadata", "[0-9a-z]{0,4}", 0..6),
    ) {
        let (details, head, points) = &*ONE_SERIES;
        let form = Form::default();
        let mut maker = Maker::new(CdmVersion::V10, details, &form).of_cell(0);
        let mut documents: Vec<Document> = Vec::new();
        for in_period in [true, false] {
            let head = SeriesHead { in_period, labels: labels.clone(), ..head.clone() };
            maker.series_of(&head, |give| give(points), |document| {
                documents.push(document);
                Ok::<_, StoreError>(())
            }).unwrap();
        }
        let names: BTreeSet<&String> = documents.iter().map(|document| &document.id).collect();
        prop_assert_eq!(names.len(), documents.len());
        for document in &documents {
            let body: Value = serde_json::from_str(&document.body).unwrap();
            prop_assert_eq!(unknown(&mapping(document.kind, CdmVersion::V10), &body, ""), Vec::<String>::new());
            let num = &body["metric_desc"]["names"]["num"];
            prop_assert!(num.is_null() || num.is_number());
        }
    }
}
