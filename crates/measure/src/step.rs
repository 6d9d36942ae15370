//! What a flow does: a short list of steps, each a value.

use serde::Serialize;

use crate::Arrivals;
use crate::media::Frames;

mod course;
mod flow;
mod life;

pub use course::{Course, Move};
pub use flow::{BURST_NS, FlowSteps, LEAST_SEND_BYTES, PATTERN_STRIDE, flow_steps};
pub use life::{
    BytePattern, Difference, Draws, ID_BYTES, Life, LifeContent, LifeFault, LifePace, LifeStep,
    Size, Text,
};

/// One thing that a flow does. Rare steps are boxed: a load may have a hundred thousand flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// Send until the end.
    Send(Transfer),
    /// Receive until the end.
    Receive(Transfer),
    /// Send and receive at the same time, each until its end. A sender that is done says that nothing more will come.
    Duplex {
        /// What is sent.
        send: Box<Transfer>,
        /// What is received.
        receive: Box<Transfer>,
    },
    /// Send requests and await a response for each.
    Exchange(Exchange),
    /// Answer requests until the peer finishes.
    Answer(Exchange),
    /// Close the connection.
    Close(Close),
    /// Make connections, each with the same life.
    Connect(Box<Churn>),
    /// Serve such connections until the load ends.
    Accept(Box<Churn>),
}

/// Bulk bytes in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    /// When it ends.
    pub end: StepEnd,
    /// Bytes of one call (stream) or of one datagram's payload.
    pub unit_bytes: u32,
    /// The pace to keep to; absent: as fast as it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// The frames that the datagrams make up, which are sent when they are due; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// What the bytes are.
    pub content: Content,
    /// How the bytes are framed.
    pub framing: Framing,
    /// How the bytes get into the system, or out of it; absent: copied.
    #[serde(skip_serializing_if = "Movement::is_copy")]
    pub movement: Movement,
    /// Whether a sender in bulk lets others on its processor have a turn now and then.
    pub yields: bool,
}

/// How bulk bytes get from the program into the system, or out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// Copied from or to the program's memory.
    #[default]
    Copy,
    /// Sent from the program's memory, which is lent until it was delivered.
    ZeroCopy,
    /// Sent from the page cache, or received into nowhere: the program has no byte of it.
    Splice,
    /// Received and dropped unread.
    Discard,
}

impl Movement {
    /// Whether this is the plain way.
    pub fn is_copy(&self) -> bool {
        *self == Self::Copy
    }
}

/// Requests and responses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    /// When it ends.
    pub end: StepEnd,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// Requests that may be on their way at once.
    pub outstanding: u32,
    /// When requests are to be sent; absent: each as soon as there is room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<FlowSchedule>,
    /// How long a response is waited for before the transaction counts as lost; absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ns: Option<u64>,
    /// What the bytes are.
    pub content: Content,
    /// How the bytes are framed.
    pub framing: Framing,
}

/// Connections that come and go, one at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Churn {
    /// When no more are made.
    pub end: StepEnd,
    /// How long a connection may take.
    pub timeout_ns: u64,
    /// When connections are to be begun; absent: each as soon as the last one is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<FlowSchedule>,
    /// What happens on each of them.
    pub life: Life,
}

/// When the requests or connections of one flow are due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowSchedule {
    /// How many per second.
    pub per_s: f64,
    /// How they follow each other.
    pub arrivals: Arrivals,
    /// Where the random numbers of [`Arrivals::Poisson`] begin: the same ones in every run.
    pub seed: u64,
    /// The first, since the load's beginning.
    pub first_ns: u64,
}

/// When a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum StepEnd {
    /// After so much time.
    Time {
        /// The time, warm-up included.
        duration_ns: u64,
    },
    /// After so many bytes.
    Bytes {
        /// The bytes.
        bytes: u64,
    },
    /// After so many sends or transactions.
    Count {
        /// The sends or transactions.
        count: u64,
    },
    /// When the peer has finished.
    Peer,
}

/// How a sender keeps to a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Pace {
    /// Each send is due when the one before it has had its time at the rate.
    Even {
        /// Bits of payload per second.
        bps: u64,
        /// The most that is sent at once, unless a single send is more.
        burst_ns: u64,
        /// A send has at least so many bytes, however low the rate.
        least_bytes: u32,
        /// When the first bytes are due, after the load has begun: flows that share a rate take turns.
        first_ns: u64,
    },
    /// Whole units are due whenever the average since the start is below the rate, as iperf3 does it.
    Average {
        /// Bits of payload per second.
        bps: u64,
        /// The least units that are sent at once.
        burst_units: u32,
        /// The shortest pause.
        pause_ns: u64,
    },
}

/// What the bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "content")]
pub enum Content {
    /// Anything; the receiver doesn't look.
    Filler,
    /// The pattern, from this position on; the receiver checks every byte.
    Pattern {
        /// Position in the pattern of the flow's first byte.
        offset: u64,
    },
}

/// How the bytes are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// Not at all: a stream of bytes.
    None,
    /// Each datagram starts with a header of its dialect.
    DatagramHeader,
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Close {
    /// Say that nothing more will be sent, then wait for the peer to say the same.
    Graceful,
    /// Wait for the peer to say that nothing more will be sent, then say the same.
    AfterPeer,
    /// In order, without waiting for the peer.
    AtOnce,
    /// By a reset.
    Reset,
    /// Wait for the peer's reset.
    AfterReset,
    /// Gracefully or by a reset, as each connection draws.
    Drawn,
}
