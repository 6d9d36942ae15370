//! The store of results: runs, samples and series, with queries and exports.
//!
//! A [`Store`] is one SQLite file. A [`Writer`] puts runs into it: a [`NewRun`] with all its cells, then what each
//! cell came to ([`CellEnd`]), each in one transaction. [`query`] answers what a metric was in windows of time.
//!
//! The crate may not know: hosts, command lines, sockets, terminals.

#![forbid(unsafe_code)]

pub mod chunk;
mod error;
mod identity;
mod insert;
pub mod model;
mod store;
mod writer;

pub use error::StoreError;
pub use model::{
    Aggregation, CellEnd, CellStatus, NewCell, NewDocument, NewHost, NewIteration, NewParam,
    NewRun, NewSeries, Origin, RecordedCell, Resumed, RunEnd, RunStatus, Tick,
};
pub use store::{Journal, RunId, RunLock, Store};
pub use writer::{AttemptId, Writer};
