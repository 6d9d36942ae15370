//! What happens in a test, as it happens.

use std::net::SocketAddr;

use linerate_measure::{Role, Sample};
use linerate_wire::iperf3::results::ServerOutput;
use linerate_wire::iperf3::{Cookie, Parameters};

use super::{Failure, Keepalive, Report};

/// Takes what happens in one test. It is called by the thread that conducts the test: a slow reader
/// delays the conversation, never the load.
pub trait Observer: Send {
    /// Something happened.
    fn handle(&mut self, event: &Event);

    /// What a client that asks for the server's output gets: all that was printed so far. It is
    /// asked for after [`Event::Ended`].
    fn server_output(&mut self) -> Option<ServerOutput> {
        None
    }
}

/// Forgets everything.
impl Observer for () {
    fn handle(&mut self, _event: &Event) {}
}

/// Something that happened in a test.
#[derive(Clone, Debug)]
pub enum Event {
    /// The control connection stands; nothing has been said.
    Connected(Box<Control>),
    /// A client has asked for this; its server hasn't agreed to it.
    Asked(Box<Parameters>),
    /// All streams stand, and the load begins.
    Started(Box<Start>),
    /// An interval of this end is over. Its flows have all streams, however many there are.
    Sample(Box<Sample>),
    /// The omitted time is over: from now on all counts.
    OmitEnded,
    /// Nothing more is counted. Where the test came to its end, the other end's figures are there too.
    Ended(Box<Report>),
    /// Something the user should know, as the original words it.
    Warning(String),
}

/// The control connection.
#[derive(Clone, Debug)]
pub struct Control {
    /// Which end this is.
    pub role: Role,
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// What names the test.
    pub cookie: Cookie,
    /// The connection's segment size.
    pub mss_bytes: Option<u32>,
    /// How it is probed, where that was asked for.
    pub keepalive: Option<Keepalive>,
    /// When (UTC, nanoseconds since 1970).
    pub utc_ns: i64,
}

/// A test's beginning.
#[derive(Clone, Debug)]
pub struct Start {
    /// Which end this is.
    pub role: Role,
    /// What is to be done: defaults resolved.
    pub parameters: Parameters,
    /// In the order in which they were made.
    pub streams: Vec<Stream>,
    /// What the kernel granted the first stream's socket to send from and to receive into, bytes.
    pub send_buffer_bytes: u32,
    /// See `send_buffer_bytes`.
    pub receive_buffer_bytes: u32,
    /// When (UTC, nanoseconds since 1970).
    pub utc_ns: i64,
}

/// One stream.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Its number in results.
    pub id: u32,
    /// What output calls it: the descriptor that the original would have (5, 7, 9, ...).
    pub socket: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// This end's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
}

/// What happens at a server, beside its tests.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// Ready for the next client.
    Listening {
        /// Where.
        address: SocketAddr,
        /// The number of the test that comes next, from 1 on.
        test_number: u64,
    },
    /// A test is over.
    TestEnded {
        /// The test's number.
        test_number: u64,
        /// Why, where not as planned.
        failure: Option<Failure>,
    },
    /// A client was told that the server is busy.
    Busy {
        /// Where it is.
        client: SocketAddr,
    },
}
