//! What is generated from the types and flags: schemas, man pages, completions.

use linerate_measure::run::exit;
use linerate_measure::schema;
use serde_json::json;

use super::{Failure, man_pages, print};
use crate::args::{CompletionsArgs, ManArgs, SchemaArgs, SchemaName};
use crate::completions::render_script;
use crate::output::render_json;

/// Prints one schema, or all in one object.
pub(super) fn print_schema(args: &SchemaArgs) -> Result<u8, Failure> {
    let document = match args.document {
        Some(SchemaName::Plan) => schema::plan(),
        Some(SchemaName::Sample) => schema::sample(),
        Some(SchemaName::Run) => schema::run(),
        Some(SchemaName::Link) => schema::link(),
        Some(SchemaName::Matrix) => linerate_lab::plan::schema(),
        Some(SchemaName::Comparison) => schema::comparison(),
        Some(SchemaName::Repeats) => schema::repeats(),
        Some(SchemaName::Loaded) => schema::loaded(),
        None => json!({
            "plan": schema::plan(),
            "sample": schema::sample(),
            "run": schema::run(),
            "link": schema::link(),
            "matrix": linerate_lab::plan::schema(),
            "comparison": schema::comparison(),
            "repeats": schema::repeats(),
            "loaded": schema::loaded(),
        }),
    };
    print(&format!("{}\n", render_json(&document)))?;
    Ok(exit::VALID)
}

/// Writes the man pages.
pub(super) fn write_man_pages(args: &ManArgs) -> Result<u8, Failure> {
    let directory = &args.directory;
    man_pages::write_pages(directory).map_err(|error| {
        Failure::here(format!("can't write man pages to {}: {error}", directory.display()))
    })?;
    Ok(exit::VALID)
}

/// Prints the completions.
pub(super) fn print_completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let script = render_script(args.shell).map_err(|error| Failure::here(error.to_string()))?;
    print(&script)?;
    Ok(exit::VALID)
}
