//! `matrix --resume`: what the store has of a run becomes what is done of a plan.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_lab::judge::Observed;
use linerate_lab::schedule::{self, CellState, Progress};
use linerate_measure::matrix::Cell;
use linerate_measure::{Role, Run};
use linerate_results::{CellStatus, RecordedCell, RunId, Store, StoreError, Writer};

use super::recorder::Ended;
use super::{Begun, Failure};

/// Takes a run up again.
pub(super) fn resume(
    path: &Path,
    writer: &Writer,
    word: &str,
    hash: &str,
) -> Result<Begun, Failure> {
    let store = Store::open_to_read(path)?;
    let row = store.find(word)?;
    let (run, resumed) = writer.resume_run(&row.run, hash)?;
    if resumed.plan_hash != hash {
        return Err(Failure::usage(format!(
            "the run {} was begun with another plan: give the plan that it was begun with, and its \
             --samples and --order where it had some, or begin a new run without --resume",
            row.run
        )));
    }
    let mut progress = Progress::new([]);
    progress.cells = resumed.cells.iter().map(state_of).collect();
    let ends = observe(&store, run, &resumed.cells, &mut progress)?;
    Ok(Begun { run, name: row.run, progress, ends })
}

fn state_of(recorded: &RecordedCell) -> CellState {
    let is_over = matches!(recorded.status, CellStatus::Done | CellStatus::Failed);
    let (cell, attempts) = (cell_of(recorded), recorded.attempts);
    // Of an earlier controller's attempts only their number is known to be its own.
    CellState { cell, is_over, attempts, failures: 0 }
}

fn cell_of(recorded: &RecordedCell) -> Cell {
    Cell { iteration: recorded.iteration, sample: recorded.sample.saturating_sub(1) }
}

/// Tells the judge what the cells came to that have their end, and says how each stands.
fn observe(
    store: &Store,
    run: RunId,
    cells: &[RecordedCell],
    progress: &mut Progress,
) -> Result<BTreeMap<u32, Ended>, StoreError> {
    let details = store.details(run)?;
    let samples = details.iterations.iter().flat_map(|iteration| &iteration.samples);
    let reasons: BTreeMap<u32, String> =
        samples.map(|sample| (sample.position, sample.reason.clone())).collect();
    let mut figures: Vec<Observed> = vec![Observed::default(); cells.len()];
    let places: BTreeMap<u32, usize> =
        cells.iter().zip(0..).map(|(cell, place)| (cell.position, place)).collect();
    store.each_document(run, |document| {
        let place = places.get(&document.position).copied();
        let is_over = |place: &usize| progress.cells.get(*place).is_some_and(|one| one.is_over);
        let last =
            |place: &usize| cells.get(*place).is_some_and(|cell| cell.attempts == document.attempt);
        if let Some(place) = place.filter(is_over).filter(last)
            && let Ok(document) = serde_json::from_str::<Run>(&document.body)
            && document.written_by == Role::Client
            && let Some(seen) = figures.get_mut(place)
        {
            seen.pairs.extend(Observed::new([&document].into_iter(), true).pairs);
        }
        Ok::<_, StoreError>(())
    })?;
    let mut ends = BTreeMap::new();
    for (recorded, mut observed) in cells.iter().zip(figures) {
        if !state_of(recorded).is_over {
            continue;
        }
        let reason = reasons.get(&recorded.position).cloned().unwrap_or_default();
        let status = match (recorded.status, reason.is_empty()) {
            (CellStatus::Failed, _) => schedule::CellStatus::Failed,
            (_, true) => schedule::CellStatus::Done,
            (_, false) => schedule::CellStatus::Untrusted,
        };
        observed.is_trusted = reason.is_empty();
        if status == schedule::CellStatus::Failed {
            observed = Observed::default();
        }
        progress.judge.observe(cell_of(recorded), observed);
        ends.insert(recorded.position, Ended { status, reason });
    }
    Ok(ends)
}
