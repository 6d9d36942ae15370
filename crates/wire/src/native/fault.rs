//! Why a conversation failed, and how far it had come.

use std::fmt;

use super::VERSIONS;

/// Why a conversation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The other end never spoke this protocol.
    #[error("the other end doesn't speak linerate's protocol (it sent \"{seen}\")")]
    NotLinerate {
        /// The first bytes that it said, at most 64; what isn't printable ASCII stands as a dot.
        seen: String,
    },
    /// The server answered in a version that was not offered.
    #[error(
        "the other end speaks version {theirs} of the protocol, this one versions {VERSIONS:?}"
    )]
    Version {
        /// The version that it named.
        theirs: u16,
    },
    /// The other end spoke the protocol wrongly.
    #[error("the other end broke the protocol: {0}")]
    Protocol(String),
    /// The other end reported a failure of its own, in these words.
    #[error("the other end reports: {0}")]
    Reported(String),
    /// Nothing was heard from the other end for too long.
    #[error("nothing was heard from the other end for {} s ({stage})", after_ns / 1_000_000_000)]
    Silent {
        /// How long.
        after_ns: u64,
        /// How far the conversation had come.
        stage: Stage,
    },
    /// The other end closed the connection before the conversation was over.
    #[error(
        "the other end closed the connection ({stage}): it was stopped, or had no room; see its log"
    )]
    Closed {
        /// How far the conversation had come.
        stage: Stage,
    },
    /// The other end is there, but what it owes has not come.
    #[error("the other end answers but has made no progress for {} s ({stage})", after_ns / 1_000_000_000)]
    Stalled {
        /// How long.
        after_ns: u64,
        /// How far the conversation had come.
        stage: Stage,
    },
    /// A message of this end can't be sent: a document is too large.
    #[error("a message can't be sent: {0}")]
    Unsendable(String),
}

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Connected; the greetings are not yet exchanged.
    Greeting,
    /// Greeted; the client has asked, or is about to.
    Asking,
    /// Admitted; the flows are being set up.
    Admitted,
    /// The flows stand; the client may start.
    Ready,
    /// The client has asked to start.
    Starting,
    /// The load runs.
    Running,
    /// The client has finished; the result is awaited.
    Finishing,
    /// The result is on its way.
    Delivering,
    /// Nothing more will be said.
    Over,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Greeting => "before the greeting",
            Stage::Asking => "before admission",
            Stage::Admitted => "while the flows were being set up",
            Stage::Ready | Stage::Starting => "before the start",
            Stage::Running => "while the load ran",
            Stage::Finishing => "while the result was awaited",
            Stage::Delivering => "while the result was on its way",
            Stage::Over => "after the end",
        })
    }
}

/// A message came where its kind has no place.
pub(super) fn out_of_order(kind: &str, stage: Stage) -> Fault {
    Fault::Protocol(format!("the message {kind} is out of order ({stage})"))
}
