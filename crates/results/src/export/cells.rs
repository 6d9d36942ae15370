//! The documents of a stored run, part by part: the run itself, and each of its cells by itself.

use super::CdmVersion;
use super::document::{Document, Form, Maker};
use crate::store::{RunId, Store};
use crate::{CellStatus, StoreError};

/// What a run has besides its cells: itself, marks, iterations and parameters. The run's own document comes first.
///
/// # Errors
/// Where the store can't be read.
pub fn documents_of_run(
    store: &Store,
    run: RunId,
    version: CdmVersion,
    form: &Form,
) -> Result<Vec<Document>, StoreError> {
    let details = store.details(run)?;
    let maker = Maker::new(version, &details, form);
    let mut documents = vec![maker.run()];
    documents.extend(maker.tags());
    documents.extend(maker.iterations());
    Ok(documents)
}

/// The iteration of the cell of this position in the run's order, with its parameters.
///
/// # Errors
/// Where the store can't be read.
pub fn iteration_of_cell(
    store: &Store,
    run: RunId,
    position: u32,
    (version, form): (CdmVersion, &Form),
) -> Result<Vec<Document>, StoreError> {
    let details = store.details_of_cell(run, position)?;
    Ok(Maker::new(version, &details, form).iterations())
}

/// Gives the documents of the cell of this position in the run's order to a function: sample, period and series. Only
/// the cell and its iteration are read.
///
/// # Errors
/// Where the store can't be read, or the function's own.
pub fn each_document_of_cell<E: From<StoreError>>(
    store: &Store,
    run: RunId,
    position: u32,
    (version, form): (CdmVersion, &Form),
    mut take: impl FnMut(Document) -> Result<(), E>,
) -> Result<(), E> {
    let details = store.details_of_cell(run, position)?;
    let mut maker = Maker::new(version, &details, form).of_cell(position);
    maker.samples().into_iter().try_for_each(&mut take)?;
    store.each_series_of_cell(run, position, |series| maker.series(&series, &mut take))
}

/// The positions of the cells that have their end.
///
/// # Errors
/// Where the store can't be read.
pub fn settled_cells(store: &Store, run: RunId) -> Result<Vec<u32>, StoreError> {
    let cells = store.cells(run)?.into_iter();
    let settled = cells.filter(|cell| matches!(cell.status, CellStatus::Done | CellStatus::Failed));
    Ok(settled.map(|cell| cell.position).collect())
}
