//! The lines between a controller and an agent: a JSON object each, with one member that names
//! what it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::collect::Request;

/// What a controller says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToAgent {
    /// The first line.
    Hello {
        /// The versions of the protocol that the controller speaks.
        versions: Vec<u32>,
        /// After so many milliseconds of silence the agent ends everything.
        lease_ms: u32,
    },
    /// Asks for a pong, and keeps the lease.
    Ping {
        /// The controller's clock at sending, nanoseconds since 1970, UTC.
        sent_ns: i64,
        /// How many lines the controller has sent before this one.
        lines: u64,
    },
    /// Starts a child.
    Start(StartTask),
    /// Writes to a child's standard input.
    Write {
        /// The child.
        task: u32,
        /// What is written; nothing is added.
        text: String,
        /// Whether the input ends after the text.
        end: bool,
    },
    /// Ends a child: SIGTERM to its process group, then SIGKILL.
    Stop {
        /// The child.
        task: u32,
        /// Milliseconds from SIGTERM to SIGKILL.
        grace_ms: u32,
    },
    /// Starts the collectors of the host's counters anew, or ends them.
    Collect {
        /// What is collected; none: nothing any more.
        request: Option<Request>,
    },
    /// The last line: the agent ends everything and exits.
    Bye {},
}

/// A child to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTask {
    /// The number by which both ends name it, used once in a session.
    pub task: u32,
    /// The words of the command line, without the program's name.
    pub argv: Vec<String>,
    /// Another program than the agent's own executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Variables of its environment besides those that the agent has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// What the child finds on its standard input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdin: String,
    /// Whether the child's standard input stays open for [`ToAgent::Write`]; else it ends after `stdin`.
    #[serde(default)]
    pub keep_stdin: bool,
}

/// What an agent says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAgent {
    /// The first line, the answer to the controller's hello. Anything that came before it was printed by
    /// login files.
    Hello(AgentHello),
    /// The answer to a ping.
    Pong {
        /// As in the ping.
        sent_ns: i64,
        /// The agent's clock when the ping came, nanoseconds since 1970, UTC.
        received_ns: i64,
        /// The agent's clock when this was sent.
        replied_ns: i64,
        /// How many lines the agent has sent before this one.
        lines: u64,
    },
    /// A child runs.
    Started {
        /// The child.
        task: u32,
        /// Its process number on the host.
        pid: u32,
    },
    /// A child could not be started, or an instruction about it not be followed.
    Refused {
        /// The child.
        task: u32,
        /// Why, a sentence.
        text: String,
    },
    /// A line of JSON that a child printed on its standard output.
    Line {
        /// The child.
        task: u32,
        /// Which of the child's lines of JSON this is, from 0.
        seq: u64,
        /// The line, as it was printed.
        json: Box<RawValue>,
    },
    /// A line that a child printed, if it was no JSON or came on standard error.
    Text {
        /// The child.
        task: u32,
        /// Where it was printed.
        stream: OutputStream,
        /// The line without its end, or a piece of a long one; bytes that are no UTF-8 are replaced.
        text: String,
    },
    /// A child has ended, and all that it printed was passed on.
    Ended(TaskEnd),
    /// What a collector read, once a second.
    Ticks(Readings),
    /// The agent's last line, when it ends for another reason than the controller's word.
    Failed {
        /// Why, a sentence.
        text: String,
    },
}

/// What a collector has read since its last readings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Readings {
    /// The collector's name.
    pub collector: String,
    /// The time of the first reading on the host's clock, nanoseconds since 1970, UTC.
    pub from_ns: i64,
    /// The readings, in the collector's own form.
    pub data: Box<RawValue>,
}

/// Who an agent is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentHello {
    /// The version of the protocol that both will speak.
    pub protocol: u32,
    /// The program's version.
    pub version: String,
    /// SHA-256 of the agent's own executable, 64 hexadecimal digits.
    pub sha256: String,
    /// The operating system, as Rust names it: `linux`.
    pub os: String,
    /// The processor's architecture, as Rust names it: `x86_64`, `aarch64`.
    pub arch: String,
    /// The effective user.
    pub uid: u32,
    /// The host's name, as the kernel has it.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// What the agent may do.
    pub capabilities: Vec<Capability>,
    /// Programs of the host that measurements can use, found in PATH.
    pub tools: Vec<String>,
}

/// Something that needs a privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Threads may take a real-time scheduling class (CAP_SYS_NICE or RLIMIT_RTPRIO).
    RealTime,
    /// Networks may be changed (CAP_NET_ADMIN).
    NetAdmin,
    /// Ports below 1024 may be bound (CAP_NET_BIND_SERVICE).
    LowPorts,
    /// Namespaces may be entered (CAP_SYS_ADMIN).
    SysAdmin,
}

/// Where a child printed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a child ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskEnd {
    /// The child.
    pub task: u32,
    /// Its exit code; absent where a signal ended it.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// What it used.
    pub usage: TaskUsage,
}

/// What a child used in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskUsage {
    /// Processor time in the program, nanoseconds, as coarse as the kernel counts it (10 ms).
    pub user_ns: u64,
    /// Processor time in the kernel, likewise.
    pub system_ns: u64,
}

/// A text in pieces of at most so many bytes (4 at least), cut between characters. An empty text is one piece.
pub(super) fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut left = Some(text);
    std::iter::from_fn(move || {
        let rest = left.take()?;
        let end = (0..=most.min(rest.len())).rev().find(|&at| rest.is_char_boundary(at));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        left = Some(after).filter(|after| !after.is_empty());
        Some(piece)
    })
}
