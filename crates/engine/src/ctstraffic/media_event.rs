//! What happens while an end of media streams runs.

use std::net::SocketAddr;

use linerate_measure::EndReport;
use linerate_wire::ctstraffic::ConnectionId;
use linerate_wire::ctstraffic::Fault;
use linerate_wire::ctstraffic::data::Mismatch;
use linerate_wire::ctstraffic::media::datagram::DatagramError;
use linerate_wire::ctstraffic::media::jitter::JitterRow;
use linerate_wire::ctstraffic::media::receiver::FrameCounts;

use crate::connections::Call;

/// Something that happened. Times are nanoseconds since the run began.
#[derive(Clone, Debug)]
pub enum MediaEvent {
    /// A server is ready for clients at this address.
    Listening(SocketAddr),
    /// A client has asked for a stream, or a server begins one.
    Established {
        /// When.
        at_ns: u64,
        /// This end and the other.
        addresses: (SocketAddr, SocketAddr),
    },
    /// A stream came to its end, for better or worse.
    Finished(Box<MediaStreamEnd>),
    /// A client's frame was rendered: its row in the file of jitter.
    Jitter(JitterRow),
    /// A datagram was not what it should be.
    BadDatagram {
        /// When.
        at_ns: u64,
        /// Where it came from.
        peer: SocketAddr,
        /// Client: the stream's id, where it has come.
        id: Option<ConnectionId>,
        /// Client: the number of its frame, where it has one.
        sequence: Option<i64>,
        /// What is wrong with it.
        error: MediaError,
    },
    /// A row of status: at the start, at each interval's end, and at the end.
    Status(MediaStatus),
    /// What a user should know of how it runs, as a sentence.
    Note(String),
    /// The time limit was reached.
    TimeIsUp,
    /// The pause before the end begins.
    Pausing,
}

/// What is wrong with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaError {
    /// It is no datagram of the dialect.
    Malformed(DatagramError),
    /// Its data is wrong.
    Wrong(Mismatch),
    /// It asks a server for a stream that would exceed the rate of all streams, bits per second.
    OverRate(u64),
    /// It asks for a stream that would exceed the rate of the streams to one address.
    OverAddressRate(u64),
}

/// A stream that came to its end.
#[derive(Clone, Debug)]
pub struct MediaStreamEnd {
    /// When.
    pub at_ns: u64,
    /// This end and the other.
    pub addresses: (SocketAddr, SocketAddr),
    /// Its id; absent where it never came.
    pub id: Option<ConnectionId>,
    /// What its frames came to. A server knows only bits.
    pub counts: FrameCounts,
    /// How long it took: at a client until a datagram of the last frame came.
    pub elapsed_ns: u64,
    /// Why it failed, where it did.
    pub fault: Option<Fault>,
    /// The system call that failed, where the system reports an error.
    pub call: Call,
    /// Client: packets that the kernel dropped because the socket's buffer was full; absent where it doesn't tell.
    pub socket_drops: Option<u64>,
}

/// A row of status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaStatus {
    /// The end of the row's time.
    pub at_ns: u64,
    /// The row's time.
    pub slice_ns: u64,
    /// Streams that run now.
    pub streams: u64,
    /// Frames and bits of that time.
    pub counts: FrameCounts,
    /// What came of all streams until its end.
    pub totals: MediaTotals,
}

/// What came of a run's streams so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaTotals {
    /// Those that were completed.
    pub completed: u64,
    /// Those that an error of the network ended.
    pub network_errors: u64,
    /// Those that an error of the protocol ended.
    pub protocol_errors: u64,
    /// Frames and bits of all streams, those that run still included.
    pub counts: FrameCounts,
    /// A client's: packets that the kernel dropped because a socket's buffer was full. Datagrams that came merged
    /// (receive offload) count as one.
    pub socket_drops: u64,
    /// A server's: datagrams of frames that this machine's stack took.
    pub sent_datagrams: u64,
    /// A server's: datagrams of frames that a queue of this machine dropped.
    pub queue_drops: u64,
    /// A server's: STARTs that were ignored because they would have exceeded a rate.
    pub refused: u64,
}

impl MediaTotals {
    /// Streams that came to their end.
    pub fn ended(&self) -> u64 {
        self.completed + self.network_errors + self.protocol_errors
    }

    pub(super) fn record_end(&mut self, fault: Option<&Fault>) {
        match fault {
            None => self.completed += 1,
            Some(Fault::Network(_)) => self.network_errors += 1,
            Some(_) => self.protocol_errors += 1,
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaRun {
    /// Its streams.
    pub totals: MediaTotals,
    /// Streams that ran still when it ended.
    pub open: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// Whether all was done that was asked: neither the time limit nor a user ended it.
    pub is_complete: bool,
    /// Events that were not told because too many waited for the caller.
    pub lost_events: u64,
    /// How long it took, and what its thread and the machine did meanwhile.
    pub report: EndReport,
}

/// Both added up.
pub(super) fn plus(a: FrameCounts, b: FrameCounts) -> FrameCounts {
    combine(a, b, u64::saturating_add)
}

/// What was added since an earlier moment.
pub(super) fn since(now: FrameCounts, earlier: FrameCounts) -> FrameCounts {
    combine(now, earlier, u64::saturating_sub)
}

fn combine(a: FrameCounts, b: FrameCounts, of: fn(u64, u64) -> u64) -> FrameCounts {
    FrameCounts {
        completed: of(a.completed, b.completed),
        dropped: of(a.dropped, b.dropped),
        repeated: of(a.repeated, b.repeated),
        errors: of(a.errors, b.errors),
        bits: of(a.bits, b.bits),
    }
}
