//! The JSON Schemas of the documents, made from the types themselves.

pub mod unknown_fields;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

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

fn schema_of<T: JsonSchema>() -> Value {
    SchemaGenerator::new(SchemaSettings::draft2020_12()).into_root_schema_for::<T>().to_value()
}
