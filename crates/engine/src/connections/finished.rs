//! Events of a load's single connections, for dialects that ask for them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::sample::TcpStatus;
use linerate_measure::step::{ID_BYTES, LifeFault};

use super::living::Living;
use crate::flow::GivenUp;
use crate::socket::TcpCounts;

/// Something that happened to a connection.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// It stands: this end's address and the other's.
    Established {
        /// When, on the monotonic clock.
        at_ns: u64,
        /// This end and the other.
        addresses: Option<(SocketAddr, SocketAddr)>,
    },
    /// It came to its end, for better or worse.
    Finished(Box<Finished>),
}

/// A connection that came to its end.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// When, on the monotonic clock.
    pub(crate) at_ns: u64,
    /// This end's address and the other's, where the connection stood.
    pub(crate) addresses: Option<(SocketAddr, SocketAddr)>,
    /// Whether its life had begun.
    pub(crate) has_lived: bool,
    /// Its id, where one was sent or has come.
    pub(crate) id: [u8; ID_BYTES],
    /// Payload.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// When its life began, and when its last transfer was over; 0: never. On the monotonic clock.
    pub(crate) began_ns: u64,
    pub(crate) transferred_ns: u64,
    /// The call that was made last.
    pub(crate) call: Call,
    /// Why it failed, where it did.
    pub(crate) failure: Option<Failure>,
    /// What the kernel knew of it, where that is asked for.
    pub(crate) tcp: Option<(TcpStatus, TcpCounts)>,
}

/// A system call that a connection or a stream makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// The socket is made and gets its options.
    #[default]
    Socket,
    /// The socket gets its local address.
    Bind,
    /// The socket is connected.
    Connect,
    /// Bytes are sent.
    Send,
    /// Bytes are received, or the peer's end is awaited.
    Receive,
    /// The peer is told that nothing more is sent.
    Shutdown,
}

impl Call {
    /// Its name in the sockets interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Bind => "bind",
            Self::Connect => "connect",
            Self::Send => "send",
            Self::Receive => "recv",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The peer did something against the connection's life.
    Fault(LifeFault),
    /// The peer ended it before its time.
    EndedEarly,
    /// Nothing moved for too long.
    Silent,
    /// The load was ended at once.
    GivenUp,
    /// An error of the system, by its number; 0: of none that has one.
    System(i32),
}

/// Takes note of what happens to connections, in the thread that has them.
#[derive(Clone)]
pub(crate) struct TellConnections {
    pub(crate) tell: Arc<dyn Fn(Told) + Send + Sync>,
    /// Whether to ask the kernel about each connection when it ends.
    pub(crate) asks_kernel: bool,
}

impl Failure {
    pub(super) fn of(error: &io::Error) -> Self {
        let cause = error.get_ref();
        if let Some(fault) = cause.and_then(|cause| cause.downcast_ref::<LifeFault>()) {
            return Self::Fault(*fault);
        }
        match (error.kind(), error.raw_os_error()) {
            _ if cause.is_some_and(|cause| cause.is::<GivenUp>()) => Self::GivenUp,
            // connect(2) says so where no port is left, which bind(2) calls an address in use.
            (_, Some(libc::EADDRNOTAVAIL)) => Self::System(libc::EADDRINUSE),
            (_, Some(number)) => Self::System(number),
            (io::ErrorKind::UnexpectedEof, None) => Self::EndedEarly,
            (io::ErrorKind::TimedOut, None) => Self::Silent,
            (io::ErrorKind::AddrNotAvailable, None) => Self::System(libc::EADDRNOTAVAIL),
            _ => Self::System(0),
        }
    }
}

impl Finished {
    /// One whose life has come so far; `None`: it had not begun, and made this call last.
    pub(super) fn new(
        at_ns: u64,
        living: Option<&Living>,
        before_life: Call,
        error: Option<&io::Error>,
    ) -> Self {
        let (sent_bytes, received_bytes) = living.map_or((0, 0), Living::moved);
        Self {
            at_ns,
            addresses: living.and_then(|living| Some(living.established.as_ref()?.addresses)),
            has_lived: living.is_some(),
            id: living.map_or([0; ID_BYTES], Living::id),
            sent_bytes,
            received_bytes,
            began_ns: living.map_or(0, |living| living.began_ns),
            transferred_ns: living.map_or(0, |living| living.transferred_ns),
            call: living.map_or(before_life, |living| living.call),
            failure: error.map(Failure::of),
            tcp: None,
        }
    }
}
