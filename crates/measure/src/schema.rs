//! The JSON Schemas of the documents, made from the types themselves.

pub mod unknown_fields;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

use crate::comparison::Comparison;
use crate::loaded::Loaded;
use crate::metric::METRICS;
use crate::repeats::Repeats;
use crate::{Plan, Run, Sample, link};

/// The JSON Schema (draft 2020-12) of a [`Plan`].
pub fn plan() -> Value {
    schema_of::<Plan>()
}

/// The JSON Schema (draft 2020-12) of a [`Sample`].
pub fn sample() -> Value {
    schema_of::<Sample>()
}

/// The JSON Schema (draft 2020-12) of a [`Run`].
pub fn run() -> Value {
    schema_of::<Run>()
}

/// The JSON Schema (draft 2020-12) of a [`link::Report`].
pub fn link() -> Value {
    schema_of::<link::Report>()
}

/// The JSON Schema (draft 2020-12) of a [`Comparison`].
pub fn comparison() -> Value {
    schema_of::<Comparison>()
}

/// The JSON Schema (draft 2020-12) of [`Repeats`].
pub fn repeats() -> Value {
    schema_of::<Repeats>()
}

/// The JSON Schema (draft 2020-12) of [`Loaded`].
pub fn loaded() -> Value {
    schema_of::<Loaded>()
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    describe_metrics(&mut schema);
    schema
}

/// Gives the figures of a summary the descriptions of their metrics.
fn describe_metrics(schema: &mut Value) {
    let figures = schema.pointer_mut("/$defs/Summary/properties").and_then(Value::as_object_mut);
    for (name, figure) in figures.into_iter().flatten() {
        let metric = METRICS.iter().find(|metric| metric.name == name);
        if let (Some(metric), Some(figure)) = (metric, figure.as_object_mut()) {
            figure.insert("description".to_owned(), metric.description().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_summary_have_the_descriptions_of_their_metrics() {
        let schema = run();
        let figures = schema["$defs"]["Summary"]["properties"].as_object().unwrap();
        for (name, figure) in figures.iter().filter(|(name, _)| {
            !["explanation", "latency_from", "latency_intervals", "limits", "one_way"]
                .contains(&name.as_str())
        }) {
            let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
            assert_eq!(figure["description"], metric.description());
        }
        let goodput = figures["goodput_bps"]["description"].as_str().unwrap();
        assert!(goodput.starts_with("Payload that arrived while all flows ran"), "{goodput}");
        assert!(goodput.contains("Unit: bit/s."), "{goodput}");
    }
}
