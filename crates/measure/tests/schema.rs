//! The published schemas name every field of the documents and their types.

use linerate_measure::run::Draft;
use linerate_measure::{Direction, Outcome, Plan, Run, Transport, Workload, schema};
use serde_json::Value;

fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    &schema["properties"][name]
}

#[test]
fn every_schema_describes_an_object_with_its_version() {
    for (title, schema) in [
        ("Plan", schema::plan()),
        ("Sample", schema::sample()),
        ("Run", schema::run()),
        ("LinkReport", schema::link()),
        ("Loaded", schema::loaded()),
    ] {
        assert_eq!(schema["title"], title);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(schema["type"], "object");
        assert_eq!(property(&schema, "schema")["type"], "string");
    }
}

#[test]
fn a_run_has_the_parts_that_programs_read() {
    let run = schema::run();
    for part in [
        "run_id",
        "dialect",
        "options",
        "plan",
        "environment",
        "samples",
        "summary",
        "status",
        "reports",
    ] {
        assert!(property(&run, part).is_object(), "{part}");
    }
    let summary = &run["$defs"]["Summary"];
    for field in ["goodput_bps", "transactions_per_s", "latency_ns", "datagrams", "fairness"] {
        assert!(property(summary, field).is_object(), "{field}");
    }
    assert!(property(&run["$defs"]["Latency"], "p99.9").is_object());
}

#[test]
fn the_dialects_have_their_places_in_the_schema() {
    let run = schema::run();
    let names = run["$defs"]["Dialect"]["oneOf"].as_array().unwrap();
    for dialect in ["native", "iperf3", "netperf", "perf"] {
        assert!(names.iter().any(|name| name["const"] == dialect), "{dialect}: {names:?}");
    }
    for holder in ["Sample", "FlowSample", "EndReport", "FlowReport"] {
        assert!(property(&run["$defs"][holder], "extension").is_object(), "{holder}");
    }
}

#[test]
fn a_document_without_a_dialect_is_native_and_the_clients() {
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    let draft = Draft::new("7".to_owned(), Plan::new("h", 1, workload));
    let run = draft.into_run(Outcome::Complete, 0, None);
    let mut value = serde_json::to_value(&run).unwrap();
    let fields = value.as_object_mut().unwrap();
    assert_eq!(fields.remove("dialect"), Some("native".into()));
    assert!(!fields.contains_key("written_by") && !fields.contains_key("options"));
    assert_eq!(serde_json::from_value::<Run>(value).unwrap(), run);
}

#[test]
fn optional_fields_are_not_required() {
    let run = schema::run();
    assert_eq!(run["$defs"]["Summary"]["required"], Value::Null);
    let required = |of: &Value, name: &str| {
        of["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let sample = schema::sample();
    assert!(required(&sample, "from_ns") && !required(&sample, "warm_up"));
}
