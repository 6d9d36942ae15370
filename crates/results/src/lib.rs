//! The store of results: runs, samples and series, with queries and exports.
