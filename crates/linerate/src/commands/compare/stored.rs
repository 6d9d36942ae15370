//! Runs that were stored: files as `--json` prints them, of one run or of several.

use std::fs::File;
use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_measure::comparison::{Asked, Comparison, Side, StoredRuns, differences};

use super::super::{Failure, await_file, read_text};

/// The longest file. A document of 10,000 flows with samples is shorter.
const TEXT_BYTES: u64 = 1 << 30;

/// Compares the runs of two files.
pub(super) fn compare(asked: &Asked, cancel: &Cancel) -> Result<Comparison, Failure> {
    let [a, b] = &asked.commands;
    let stored = |path: &str, side: Side| {
        let path = path.to_owned();
        await_file(cancel, move || read(&path, side))
    };
    Ok(compare_runs(asked, stored(a, Side::A)?, stored(b, Side::B)?))
}

/// Compares runs of A and B.
pub(in crate::commands) fn compare_runs(asked: &Asked, a: StoredRuns, b: StoredRuns) -> Comparison {
    let differing = a.first.zip(b.first).map(|(a, b)| differences(&a, &b)).unwrap_or_default();
    Comparison::of_stored(asked, [a.runs, b.runs].concat(), differing)
}

fn read(path: &str, side: Side) -> Result<StoredRuns, Failure> {
    let text = read_text(File::open(Path::new(path)), path, TEXT_BYTES).map_err(Failure::here)?;
    StoredRuns::parse(&text, side).map_err(|_| {
        Failure::usage(format!(
            "{path} holds no run: give a file as `linerate stream --json` prints it"
        ))
    })
}
