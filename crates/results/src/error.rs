//! Why the store could not do what was asked.

use std::path::PathBuf;

/// Why the store could not do what was asked: a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file can't be opened, made or written.
    #[error("can't use the store {}: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        why: String,
    },
    /// The file was written by a newer program.
    #[error(
        "the store {} has version {found}, and this linerate knows versions up to {known}: use a newer linerate, \
         or name another file with --store",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The file is something else.
    #[error("{} is not a store of results: name another file with --store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// What stands in the file breaks its format.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// What was to be stored breaks a limit of the format.
    #[error("can't store {0}")]
    Unfit(String),
    /// What was asked for is not there, or more than one thing is meant.
    #[error("{0}")]
    NotFound(String),
    /// Another process works on the run.
    #[error("the run {run} belongs to another process, {holder}: wait for its end, or stop it")]
    Held {
        /// The run.
        run: String,
        /// Host and process.
        holder: String,
    },
    /// SQLite failed.
    #[error("the store failed: {0}")]
    Sql(#[from] rusqlite::Error),
    /// The thread that writes has ended.
    #[error("the store's writer has ended after a failure: {0}")]
    WriterGone(String),
}
