//! What can go wrong, by whose fault it is.

use std::io;

use linerate_measure::run::exit;

/// Why a measurement can't be made. Each text says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request makes no sense.
    #[error("{0}")]
    Plan(String),
    /// This machine refuses: a limit, a permission, a missing feature.
    #[error("{0}")]
    Host(String),
    /// The other end spoke wrongly.
    #[error("{0}")]
    Peer(String),
    /// The other end, or this one, refused the other's key.
    #[error("{0}")]
    Refused(String),
    /// The server has no room for this test.
    #[error("{0}")]
    Busy(String),
    /// The server can't be reached.
    #[error("{0}")]
    Unreachable(String),
    /// An operation failed.
    #[error("can't {operation} {address}: {source}")]
    Io {
        /// What was tried, as a verb: `connect to`, `listen on`, ...
        operation: &'static str,
        /// With what.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The user asked to stop before there was anything to report.
    #[error("interrupted before the load began: nothing was measured")]
    Interrupted,
    /// The user asked to stop, and what the other end had to tell of the load didn't come.
    #[error("{0}")]
    Unfinished(String),
}

impl Error {
    /// This machine gives no more threads. Each dialect has options of its own for their number, so none is named.
    pub fn no_thread(error: &io::Error) -> Self {
        Error::Host(format!(
            "can't start another thread ({error}): raise the limit of processes (ulimit -u) or a container's \
             limit of tasks (pids.max), or ask for fewer threads"
        ))
    }

    /// The exit code of the native commands for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Plan(_) => exit::USAGE,
            Error::Host(_) | Error::Peer(_) | Error::Io { .. } => exit::FAILED,
            Error::Refused(_) => exit::REFUSED,
            Error::Busy(_) => exit::BUSY,
            Error::Unreachable(_) => exit::UNREACHABLE,
            Error::Interrupted | Error::Unfinished(_) => exit::INTERRUPTED,
        }
    }
}

#[test]
fn a_limit_of_threads_is_told_without_an_option_that_some_dialects_lack() {
    let text = Error::no_thread(&io::Error::from_raw_os_error(11)).to_string();
    assert!(text.contains("ulimit -u") && text.contains("pids.max"), "{text}");
    assert!(!text.contains("--"), "{text}");
}
