//! The store of results: runs, samples and series, with queries and exports.
//!
//! A [`Store`] is one SQLite file. A [`Writer`] puts runs into it: a [`NewRun`] with all its cells, then what each
//! cell came to ([`CellEnd`]), each in one transaction. [`query`] answers what a metric was in windows of time.
//!
//! The crate may not know: hosts, command lines, sockets, terminals.

#![forbid(unsafe_code)]

pub mod breakout;
pub mod chunk;
pub mod compare;
pub mod convert;
mod error;
pub mod exchange;
pub mod export;
pub mod exposition;
mod identity;
mod insert;
pub mod merge;
pub mod model;
pub mod otlp;
pub mod outcome;
pub mod plot;
pub mod points;
pub mod query;
pub mod read;
mod store;
pub mod values;
mod writer;

pub use convert::{
    Recorded, RunSeries, run_name, series_by_clock, series_of, series_of_documents, single_run,
    source_of,
};
pub use error::StoreError;
pub use model::{
    Aggregation, CellEnd, CellStatus, NewCell, NewDocument, NewHost, NewIteration, NewParam,
    NewRun, NewSeries, Origin, RecordedCell, Resumed, RunEnd, RunStatus, Tick,
};
pub use store::{Journal, RunId, RunLock, Store};
pub use writer::{AttemptId, Writer};

#[cfg(test)]
mod tests;
