//! What a server is told at the start, and what it tells.

use crate::native::message::{FlowCount, RefusalCause, Request};
use crate::native::{Fault, LeaseWish};

/// What a server says of itself and expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Name and version of the program.
    pub software: String,
    /// The proof that a client must show; `None`: every client is welcome.
    pub expected_proof: Option<[u8; 32]>,
}

/// Something that a server's caller should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The client asks for a test: admit, queue or refuse it.
    Request {
        /// The document that says what is wanted; not yet looked at.
        plan: String,
        /// Wait until no other client measures.
        exclusive: bool,
        /// How it is to be counted.
        lease: LeaseWish,
    },
    /// The client wants the load to start.
    Start {
        /// When (UTC, nanoseconds since 1970); `None`: at once.
        at_utc_ns: Option<i64>,
    },
    /// How many datagrams the client has sent in some of the flows.
    PeerSent(Vec<FlowCount>),
    /// The client is done; before the load runs: it gave up, and the conversation is over.
    Finish,
    /// The client was turned away (wrong version or key). The conversation is over.
    TurnedAway {
        /// What for.
        cause: RefusalCause,
    },
    /// The conversation failed and is over.
    Failed(Fault),
}

impl ServerEvent {
    /// The event of a request.
    pub(super) fn of(request: Request) -> Self {
        let lease = LeaseWish::of(&request);
        Self::Request { plan: request.plan, exclusive: request.exclusive, lease }
    }
}
