//! Runs in OpenSearch or Elasticsearch, as documents of the Common Data Model.
//!
//! [`document`] makes the documents of a run and of its cells, [`mapping`] the indices that they go to. [`client`]
//! writes them to a server by way of an [`Exchange`](client::Exchange), which the program implements over HTTP.
//! [`outbox`] keeps what a server does not have yet, and [`indexed`] makes a store of what a server has of runs.

pub mod cells;
pub mod client;
pub mod document;
pub mod indexed;
pub mod mapping;
pub mod outbox;
mod version;

pub use version::{CdmVersion, DocumentKind};

#[cfg(test)]
mod tests;
