//! `results export`: the documents and series of runs as lines, as rows, or as a store of their own.

use std::fmt::Write as _;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_results::Store;
use linerate_results::points::{Point, StoredSeries};
use linerate_results::read::RunRow;
use linerate_results::values::Values;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{Failure, run_json};
use crate::args::ExportArgs;
use crate::commands::open_destination;
use crate::output::{Destination, csv_head, csv_row_head, push_shown};

/// Text is handed on in pieces of this size.
const PIECE_BYTES: usize = 1 << 18;

/// Where lines go, some at a time.
struct Lines<'a> {
    destination: Destination,
    text: String,
    cancel: &'a Cancel,
}

impl Lines<'_> {
    /// Hands on what there is, once it is enough.
    fn advance(&mut self) -> Result<(), Failure> {
        if self.text.len() < PIECE_BYTES {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if self.cancel.requested() {
            let text = Some("interrupted before all was exported".to_owned());
            return Err(Failure { exit_code: exit::INTERRUPTED, text });
        }
        self.destination.put(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Writes runs in the form that is asked for. What is held of a run does not grow with its series.
pub(super) fn write_runs(store: &Store, args: &ExportArgs, cancel: &Cancel) -> Result<(), Failure> {
    let runs = args.runs.iter().map(|word| store.find(word)).collect::<Result<Vec<_>, _>>()?;
    if let Some(path) = &args.bundle {
        let ids: Vec<_> = runs.iter().map(|run| run.id).collect();
        return Ok(store.bundle(&ids, path)?);
    }
    let destination = open_destination(args.output.as_deref(), cancel)?;
    let mut lines = Lines { destination, text: String::new(), cancel };
    if args.csv {
        lines.text.push_str(csv_head());
    }
    for row in &runs {
        if args.csv {
            store.each_series(row.id, |series| put_rows(&mut lines, row, series))?;
            continue;
        }
        put_run(&mut lines, store, row)?;
        store.each_series(row.id, |series| put_series(&mut lines, row, series))?;
    }
    lines.flush()?;
    lines.destination.commit().map_err(Failure::here)
}

/// A row for each point of a series.
fn put_rows(
    lines: &mut Lines<'_>,
    row: &RunRow,
    series: &StoredSeries<'_, '_>,
) -> Result<(), Failure> {
    let head = csv_row_head(&row.run, &series.head);
    series.each_part(|points: &[Point]| {
        for (span, value) in points {
            // Nothing fails to be written to memory.
            let _ = writeln!(lines.text, "{head},{},{},{value}", span.begin_ms, span.end_ms);
        }
        lines.advance()
    })
}

/// A line for the run, and one for each document.
fn put_run(lines: &mut Lines<'_>, store: &Store, row: &RunRow) -> Result<(), Failure> {
    let details = store.details(row.id)?;
    let values = Values::read(store, &details)?;
    let mut line = run_json(store, &details, &values)?;
    if let Some(fields) = line.as_object_mut() {
        fields.insert("record".to_owned(), "run".into());
    }
    push_shown(&mut lines.text, &line.to_string());
    lines.text.push('\n');
    store.each_document(row.id, |document| {
        let line = json!({
            "record": "document",
            "run": row.run,
            "position": document.position,
            "attempt": document.attempt,
            "host": document.host,
            "kind": document.kind,
        });
        put_object(lines, &line, "document");
        match serde_json::from_str::<IgnoredAny>(&document.body) {
            // Between the parts of a document there may be ends of lines; in its texts there are none.
            Ok(_) => {
                for part in document.body.lines() {
                    push_shown(&mut lines.text, part.trim_start());
                }
            }
            Err(_) => push_shown(&mut lines.text, &Value::from(document.body).to_string()),
        }
        lines.text.push_str("}\n");
        lines.advance()
    })
}

/// A line for a series with its points.
fn put_series(
    lines: &mut Lines<'_>,
    row: &RunRow,
    series: &StoredSeries<'_, '_>,
) -> Result<(), Failure> {
    let head = &series.head;
    let line = json!({
        "record": "series",
        "run": row.run,
        "iteration": head.cell.map(|(iteration, _)| iteration),
        "sample": head.cell.map(|(_, sample)| sample),
        "source": head.source,
        "type": head.metric,
        "class": head.class,
        "unit": head.unit,
        "labels": head.labels,
    });
    put_object(lines, &line, "points");
    lines.text.push('[');
    let mut between = "";
    series.each_part(|points: &[Point]| {
        for (span, value) in points {
            let value = Value::from(*value);
            let _ = write!(lines.text, "{between}[{},{},{value}]", span.begin_ms, span.end_ms);
            between = ",";
        }
        lines.advance()
    })?;
    lines.text.push_str("]}\n");
    lines.advance()
}

/// An object without its end, up to the value of one more field.
fn put_object(lines: &mut Lines<'_>, object: &Value, field: &str) {
    let text = object.to_string();
    push_shown(&mut lines.text, text.strip_suffix('}').unwrap_or(&text));
    let _ = write!(lines.text, ",\"{field}\":");
}
