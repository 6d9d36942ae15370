//! Runs that were stored: files as `--json` prints them, of one run or of several.

use std::fs::File;
use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::comparison::{
    Asked, ComparedRun, Comparison, Side, differences, figures_of_run,
};
use linerate_measure::repeats::Repeats;
use linerate_measure::{Outcome, Run};
use serde::Deserialize;

use super::super::{Failure, await_file, read_text};

/// The longest file. A document of 10,000 flows with samples is shorter.
const TEXT_BYTES: u64 = 1 << 30;

/// One document, an array of them, or several runs of one plan.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Several(Vec<Run>),
    Repeats(Box<Repeats>),
    One(Box<Run>),
}

/// Compares the runs of two files.
pub(super) fn compare(asked: &Asked, cancel: &Cancel) -> Result<Comparison, Failure> {
    let [a, b] = asked.commands.clone().map(|path| await_file(cancel, move || read(&path)));
    let (a, b) = (a?, b?);
    let differing = a.first().zip(b.first()).map(|(a, b)| differences(a, b)).unwrap_or_default();
    let compared = |side: Side, runs: &[Run]| -> Vec<ComparedRun> {
        (1..).zip(runs).map(|(number, run)| compared(side, number, run)).collect()
    };
    let runs = [compared(Side::A, &a), compared(Side::B, &b)].concat();
    Ok(Comparison::of_stored(asked, runs, differing))
}

fn compared(side: Side, pair: usize, run: &Run) -> ComparedRun {
    let is_measured = matches!(run.status.outcome, Outcome::Complete | Outcome::Untrustworthy);
    ComparedRun {
        side,
        pair,
        run_id: Some(run.run_id.clone()),
        exit_code: run.status.exit_code.into(),
        figures: if is_measured { figures_of_run(run) } else { Default::default() },
        message: run.status.message.clone(),
    }
}

fn read(path: &str) -> Result<Vec<Run>, Failure> {
    let text = read_text(File::open(Path::new(path)), path, TEXT_BYTES).map_err(Failure::here)?;
    let stored: Stored = serde_json::from_str(&text).map_err(|_| {
        Failure::usage(format!(
            "{path} holds no run: give a file as `linerate stream --json` prints it"
        ))
    })?;
    Ok(match stored {
        Stored::Several(runs) => runs,
        Stored::Repeats(repeats) => repeats.documents,
        Stored::One(run) => vec![*run],
    })
}
