//! What a controller and the agent on a host say to each other: two pure state machines.
//!
//! A host is a way to start `linerate agent` with a standard input and a standard output. Both
//! carry lines of JSON ([`ToAgent`], [`FromAgent`]). [`Controller`] is the end that wants
//! something done, [`Agent`] the end that does it. Neither has a clock, a thread or a file:
//! `handle_` functions take what happened with the time, `poll_` functions give what to do next.
//!
//! The agent holds a *lease*: it ends all that it has started when nothing was heard from the
//! controller for [`LEASE_NS`], or when its input ends. So nothing is left on a host whose
//! controller was killed, stopped or cut off.

mod controller;
mod event;
mod lease;
mod machine;
mod message;
mod process;
#[cfg(test)]
mod tests;

pub use controller::Controller;
pub(crate) use event::one_line;
pub use event::{ChildEvent, ChildEventKind, ControllerEvent, Failure};
pub use lease::Lease;
pub use machine::{Action, Agent, AgentEnd};
pub use message::{
    AgentHello, Capability, FromAgent, OutputStream, Readings, StartTask, TaskEnd, TaskUsage,
    ToAgent,
};
pub use process::{AgentProcess, Collectors, become_child, hello};

/// The versions of the protocol that this program speaks, newest first.
pub const VERSIONS: [u32; 1] = [1];

/// After so long without a line of the controller, an agent ends everything and exits.
pub const LEASE_NS: u64 = 5 * SECOND_NS;

/// The shortest and the longest lease that an agent agrees to, milliseconds.
pub const LEASE_LIMITS_MS: (u32, u32) = (1_000, 60_000);

/// The controller sends a ping so often.
pub const PING_EVERY_NS: u64 = SECOND_NS;

/// After so long without a line of the agent, its host is silent.
pub const SILENT_NS: u64 = 3 * SECOND_NS;

/// A child that was told to end is killed after so long.
pub const GRACE_NS: u64 = 3 * SECOND_NS;

/// The longest line to an agent, bytes.
pub const MAX_LINE_TO_AGENT: usize = 1 << 20;

/// The longest line of an agent, bytes.
pub const MAX_LINE_FROM_AGENT: usize = 16 << 20;

/// The longest line of a child that is passed on whole if it is JSON, bytes. A longer one comes in pieces of
/// text.
pub const MAX_LINE_OF_CHILD: usize = 8 << 20;

/// The longest piece of text of a child, bytes: a longer line that is no JSON comes in several. As JSON a piece
/// may take six times as much, which [`MAX_LINE_FROM_AGENT`] holds.
pub const MAX_TEXT_OF_CHILD: usize = 1 << 20;

/// The most children that an agent has at a time.
pub const MAX_TASKS: usize = 256;

/// The most words of a command line.
pub const MAX_WORDS: usize = 1024;

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

/// A moment on a machine's two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// A clock that never goes back, nanoseconds; it also counts while the machine is suspended.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970, UTC.
    pub utc_ns: i64,
}

impl Moment {
    /// This machine's clocks now.
    pub fn now() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        let ns = |id| {
            let time = clock_gettime(id);
            time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
        };
        Self {
            monotonic_ns: u64::try_from(ns(ClockId::Boottime)).unwrap_or(0),
            utc_ns: ns(ClockId::Realtime),
        }
    }
}
