//! The documents of a stored run: the run itself, and each of its cells by itself.

use super::CdmVersion;
use super::document::{Document, Form, Maker};
use crate::StoreError;
use crate::store::{RunId, Store};

/// Gives what a run has besides its cells to a function: itself, marks, iterations and parameters. The run's own document
/// comes first.
///
/// # Errors
/// Where the store can't be read, or the function's own.
pub fn each_document_of_run<E: From<StoreError>>(
    store: &Store,
    run: RunId,
    (version, form): (CdmVersion, &Form),
    mut take: impl FnMut(Document) -> Result<(), E>,
) -> Result<(), E> {
    let details = store.details(run)?;
    let maker = Maker::new(version, &details, form);
    take(maker.run())?;
    maker.tags().into_iter().try_for_each(&mut take)?;
    maker.iterations(take)
}

/// Gives the documents of the cell of this position in the run's order to a function: its iteration with parameters,
/// sample, period and series. Only the cell and its iteration are read.
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
    maker.iterations(&mut take)?;
    maker.samples(&mut take)?;
    store.each_series_of_cell(run, position, |series| maker.series(series, &mut take))
}

/// Gives all documents of a run to a function: those of [`each_document_of_run`], then samples, periods and series of the
/// cells that have their end. What is held of the run does not grow with its series.
///
/// # Errors
/// Where the store can't be read, or the function's own.
pub fn each_document<E: From<StoreError>>(
    store: &Store,
    run: RunId,
    (version, form): (CdmVersion, &Form),
    mut take: impl FnMut(Document) -> Result<(), E>,
) -> Result<(), E> {
    let details = store.details(run)?;
    let mut maker = Maker::new(version, &details, form);
    take(maker.run())?;
    maker.tags().into_iter().try_for_each(&mut take)?;
    maker.iterations(&mut take)?;
    maker.samples(&mut take)?;
    store.each_series(run, |series| maker.series(series, &mut take))
}
