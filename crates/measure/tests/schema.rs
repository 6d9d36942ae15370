//! The published schemas name every field of the documents and their types.

use linerate_measure::schema;
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
    for part in ["run_id", "plan", "environment", "samples", "summary", "status", "reports"] {
        assert!(property(&run, part).is_object(), "{part}");
    }
    let summary = &run["$defs"]["Summary"];
    for field in ["goodput_bps", "transactions_per_s", "latency_ns", "datagrams", "fairness"] {
        assert!(property(summary, field).is_object(), "{field}");
    }
    assert!(property(&run["$defs"]["Latency"], "p99.9").is_object());
}

#[test]
fn what_may_be_absent_is_not_required() {
    let run = schema::run();
    assert_eq!(run["$defs"]["Summary"]["required"], Value::Null);
    let required = |of: &Value, name: &str| {
        of["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let sample = schema::sample();
    assert!(required(&sample, "from_ns") && !required(&sample, "warm_up"));
}
