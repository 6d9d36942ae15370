//! What a client is told at the start, and what it tells.

use crate::native::message::{FlowCount, RefusalCause};
use crate::native::{Fault, LeaseWish, TOKEN_BYTES};

/// What a client says of itself and asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Name and version of the program.
    pub software: String,
    /// The proof that it holds the key shared with the server.
    pub proof: Option<[u8; 32]>,
    /// The document that says what is wanted.
    pub plan: String,
    /// Wait until no other client measures against this server.
    pub exclusive: bool,
    /// Whether there may be another test when this one has its result: the conversation then goes on, where the
    /// server's version allows it.
    pub stays: bool,
    /// How its tests are counted by the server.
    pub lease: LeaseWish,
}

/// Something that a client's caller should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The server speaks the protocol.
    Welcomed {
        /// In this version.
        version: u16,
        /// Name and version of its program.
        software: String,
    },
    /// The client waits for its turn.
    Queued {
        /// 1: next.
        place: u32,
    },
    /// The server keeps a place for this connection: the token for tests on others that belong to it. Comes just before
    /// [`Self::Admitted`], and never from a server that knows no leases.
    Leased([u8; TOKEN_BYTES]),
    /// The flows may be set up.
    Admitted {
        /// Names the run at both ends: 32 hexadecimal digits.
        run_id: String,
        /// What each flow shows to belong to this test.
        token: [u8; TOKEN_BYTES],
        /// The document that describes the server's machine.
        host: String,
    },
    /// A ping was answered.
    ClockSample(ClockSample),
    /// All flows have arrived at the server: [`super::Client::start`] may be called.
    Ready,
    /// The load runs.
    Started {
        /// When (UTC, nanoseconds since 1970, the server's clock).
        utc_ns: i64,
    },
    /// What the server counted in an interval.
    Sample(String),
    /// How many datagrams the server has sent in some of the flows.
    PeerSent(Vec<FlowCount>),
    /// What the server counted in all. The conversation is over, or at [`Stage::Delivering`] where it stays.
    ///
    /// [`Stage::Delivering`]: crate::native::Stage::Delivering
    Result(String),
    /// The server turned the client away. The conversation is over.
    Refused {
        /// What for.
        cause: RefusalCause,
        /// The same in a sentence for the user.
        text: String,
    },
    /// The conversation failed and is over.
    Failed(Fault),
}

/// The four stamps of a ping and its pong (RFC 5905, section 8). All are UTC, nanoseconds since
/// 1970; the server's are remote input and may be any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// When the client sent the ping. Reckoned back from the pong's arrival on the monotonic
    /// clock, so that a step of the client's clock in between doesn't touch the round trip.
    pub client_sent_utc_ns: i64,
    /// When the server received it.
    pub server_received_utc_ns: i64,
    /// When the server sent the pong.
    pub server_replied_utc_ns: i64,
    /// When the client received the pong.
    pub client_received_utc_ns: i64,
    /// When the client sent the ping and received the pong, on its monotonic clock.
    pub client_monotonic_ns: (u64, u64),
    /// When the server answered, on its monotonic clock. Older servers don't tell it.
    pub server_monotonic_ns: Option<u64>,
}
