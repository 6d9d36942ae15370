//! What a controller finds out, and why a channel is of no more use.

use std::fmt;

use serde_json::value::RawValue;

use super::message::{AgentHello, OutputStream, Readings, TaskEnd};
use super::{LEASE_NS, VERSIONS};

/// What a controller has found out.
#[derive(Debug)]
pub enum ControllerEvent {
    /// The agent has said who it is.
    Opened(AgentHello),
    /// The offset of the agent's clock was measured by a burst of round trips: as was asked for, or because one of the
    /// clocks was set.
    ClockMeasured,
    /// Something happened to a child.
    Child(ChildEvent),
    /// A collector read something.
    Ticks(Readings),
    /// Nothing was heard for [`SILENT_NS`](super::SILENT_NS).
    Silent,
    /// The agent was heard again, after [`Self::Silent`].
    Heard,
    /// The channel is of no more use; nothing comes after this.
    Failed(Failure),
    /// The agent ended as it was told to; nothing comes after this.
    Closed,
}

/// What happened to a child.
#[derive(Debug)]
pub struct ChildEvent {
    /// The child.
    pub task: u32,
    /// What.
    pub kind: ChildEventKind,
}

/// What happened to a child.
#[derive(Debug)]
pub enum ChildEventKind {
    /// It runs, with this process number on the host.
    Started {
        /// The process number.
        pid: u32,
    },
    /// It could not be started: why, a sentence. Nothing comes after this.
    Refused(String),
    /// It printed a line of JSON, which is passed on unread.
    Line {
        /// Which of its lines of JSON, from 0.
        seq: u64,
        /// The line.
        json: Box<RawValue>,
    },
    /// It printed something else.
    Text {
        /// Where.
        stream: OutputStream,
        /// A line, without its end, or a piece of a long one.
        text: String,
    },
    /// It ended. Nothing comes after this.
    Ended(TaskEnd),
}

/// Why a channel is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No hello came in time, or the channel ended before it. What was printed instead.
    NoHello {
        /// Whether the channel ended; else the time was over.
        ended: bool,
        /// What login files and the shell have printed.
        noise: String,
    },
    /// The agent speaks no version of the protocol that this program speaks.
    Version {
        /// The agent's version.
        agent: u32,
    },
    /// Nothing was heard for the whole lease.
    Silence,
    /// The channel ended.
    Ended,
    /// The agent ended by itself.
    Agent {
        /// Why, a sentence of the agent.
        text: String,
    },
    /// The agent said what no agent says.
    Nonsense {
        /// What is wrong, a clause.
        text: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHello { ended: true, noise } => {
                write!(f, "the channel ended before linerate's agent began")?;
                write_noise(f, noise)
            }
            Self::NoHello { ended: false, noise } => {
                write!(f, "linerate's agent did not begin in time")?;
                write_noise(f, noise)
            }
            Self::Version { agent } => write!(
                f,
                "the agent speaks version {agent} of the protocol, this program {}: use the same \
                 linerate on both",
                VERSIONS[0]
            ),
            Self::Silence => {
                write!(f, "nothing was heard for {} s", LEASE_NS / super::SECOND_NS)
            }
            Self::Ended => write!(f, "the channel ended while it was in use"),
            Self::Agent { text } => write!(f, "the agent ended: {text}"),
            Self::Nonsense { text } => write!(f, "the agent sent {text}"),
        }
    }
}

fn write_noise(f: &mut fmt::Formatter<'_>, noise: &str) -> fmt::Result {
    match noise.trim() {
        "" => write!(f, "; nothing was printed"),
        noise => write!(f, "; what was printed instead: {}", one_line(noise)),
    }
}

/// Several lines as one, without characters that steer a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let joined = words.collect::<Vec<_>>().join(" / ");
    joined.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The beginning of a line, for a sentence.
pub(super) fn shorten(line: &str) -> String {
    const MOST: usize = 80;
    let text = one_line(line);
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}
