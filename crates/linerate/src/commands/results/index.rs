//! `results export --opensearch` and `results outbox`: runs in an index.

use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_results::Store;
use linerate_results::export::client::{IndexError, Written};
use linerate_results::export::document::Form;
use linerate_results::export::outbox::{Part, deliver, parts, retry_refused, write_run};

use super::{Failure, open};
use crate::args::{ExportArgs, OutboxArgs};
use crate::commands::print;
use crate::index::{ATTENDED_TRIES, Target, exit_code, report_waiting};
use crate::output::{Style, Table, narrate, render_json};

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        Self { exit_code: exit_code(&error), text: Some(error.to_string()) }
    }
}

/// Writes runs to an index; the exit code.
pub(super) fn send_runs(
    store: &Store,
    args: &ExportArgs,
    url: &str,
    cancel: &Cancel,
) -> Result<u8, Failure> {
    let runs = args.runs.iter().map(|word| store.find(word)).collect::<Result<Vec<_>, _>>()?;
    let target = Target::new("--opensearch", url, &args.server).map_err(Failure::usage)?;
    let mut index = target.open(args.cdm, ATTENDED_TRIES, cancel)?;
    let form = Form { hz: args.hz, sources: args.sources.clone() };
    let mut exit_code = exit::VALID;
    for run in &runs {
        write_run(store, &mut index, run.id, &form)?;
        let written = index.take_written();
        print(&format!(
            "run {}: {} documents created, {} updated, in {}\n",
            run.run,
            written.created,
            written.updated,
            index.version().name()
        ))?;
        if written.refused > 0 {
            exit_code = exit::FAILED;
            tell_refusals(&written);
        }
    }
    Ok(exit_code)
}

fn tell_refusals(written: &Written) {
    narrate(&format!("linerate: the index refused {} documents:\n", written.refused));
    for refusal in written.refusals.iter().take(10) {
        narrate(&format!("  {}\n", linerate_wire::visible::visible_line(refusal)));
    }
}

/// Lists what waits for an index, or sends it; the exit code.
pub(super) fn outbox(path: &Path, args: &OutboxArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let Some(url) = &args.send else {
        let waiting = parts(&open(path)?)?;
        print(&match args.json {
            true => format!("{}\n", render_json(&waiting)),
            false => render(&waiting),
        })?;
        return Ok(exit::VALID);
    };
    let target = Target::new("--send", url, &args.server).map_err(Failure::usage)?;
    drop(open(path)?);
    let store = Store::open(path)?;
    let mut index = target.open(None, ATTENDED_TRIES, cancel)?;
    retry_refused(&store, target.url())?;
    let delivered = deliver(&store, &mut index, target.url());
    report_waiting(path, target.url());
    let delivered = delivered?;
    print(&format!(
        "{} parts of runs sent: {} documents created, {} updated\n",
        delivered.parts, delivered.created, delivered.updated
    ))?;
    if let Some(failure) = delivered.failure {
        return Err(failure.into());
    }
    match delivered.refused {
        0 => Ok(exit::VALID),
        refused => Err(Failure::here(format!(
            "the index refused documents of {refused} parts; `linerate results outbox` has its reasons"
        ))),
    }
}

fn render(parts: &[Part]) -> String {
    if parts.is_empty() {
        return "nothing waits for an index\n".to_owned();
    }
    let mut table = Table::with_head(&["run", "part", "index", "state", "tries", "reason"]);
    for part in parts {
        let name = part.position.map_or("run".to_owned(), |position| format!("cell {position}"));
        let visible = linerate_wire::visible::visible_line;
        table.push(vec![
            visible(&part.run),
            name,
            visible(&part.target),
            visible(&part.state),
            part.tries.to_string(),
            visible(&part.reason),
        ]);
    }
    table.render(Style::Plain)
}
