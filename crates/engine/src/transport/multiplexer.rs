//! Many streams over each of many connections, on one thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::sample::TcpStatus;
use linerate_wire::perf::answer::Start;

use crate::socket::TcpCounts;

/// A connection of a [`Multiplexer`]. One that has ended is not known any more: what is asked of it does
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Link {
    pub(crate) index: u32,
    /// Tells connections apart that have the same index one after another.
    pub(crate) generation: u32,
}

/// Something that happened to a connection.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    /// It stands, keys and all.
    Established,
    /// Bytes of a stream have come, or its end.
    Received {
        stream: u64,
        /// Whether the stream has no way back.
        one_way: bool,
        /// The first bytes of the piece.
        start: Start,
        bytes: usize,
        finished: bool,
    },
    /// The other end gave a stream up, with this code where the transport has codes; nothing more will come.
    #[allow(dead_code, reason = "the perf dialect gives codes no meaning")]
    Reset { stream: u64, code: Option<u64> },
    /// The other end wants no more of a stream, with this code.
    Stopped { stream: u64, code: u64 },
    /// So many bytes more of a stream are at the other end, as far as this transport can tell.
    Delivered { stream: u64, bytes: u64 },
    /// A send that took less than it was given may be tried again: of this stream, or of all.
    Writable { stream: Option<u64> },
    /// It is gone.
    Ended { ending: Box<Ending> },
}

/// How a connection ended.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Whether it ever stood.
    pub established: bool,
    /// Why it ended, in a word that kinds of failures are counted by; absent when it ended as it
    /// should.
    pub failure: Option<&'static str>,
    /// What is known of its packets.
    pub statistics: Statistics,
}

/// What a transport knows of a connection's packets.
#[derive(Clone, Debug, Default)]
pub enum Statistics {
    /// Nothing.
    #[default]
    Unknown,
    /// TCP's, from the kernel.
    Tcp(TcpStatus, TcpCounts),
    /// QUIC's.
    Quic(QuicStatistics),
}

/// What QUIC counts in a connection; what isn't counted is absent.
#[derive(Clone, Debug, Default)]
pub struct QuicStatistics {
    /// Smoothed round-trip time, µs.
    pub rtt_us: u64,
    /// Least round-trip time, µs.
    pub min_rtt_us: Option<u64>,
    /// Whether the path carries congestion marks.
    pub ecn_capable: Option<bool>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets taken for lost.
    pub lost_packets: u64,
    /// How often the congestion window was cut; with BBR, how often packets were lost or marked that had left
    /// since the time before.
    pub congestion_events: u64,
    /// Part of them because the peer had seen congestion marks.
    pub ecn_congestion_events: Option<u64>,
    /// Packets received, whatever became of them.
    pub received_packets: Option<u64>,
    /// Packets that came behind one with a greater number.
    pub reordered_packets: Option<u64>,
    /// Packets that were not taken: duplicates, those that could not be opened, those without a key.
    pub dropped_packets: Option<u64>,
    /// Packets that had come before.
    pub duplicate_packets: Option<u64>,
    /// Packets whose seal was not right.
    pub decryption_failures: Option<u64>,
    /// The TLS cipher suite's number.
    pub cipher_suite: Option<u16>,
    /// The TLS group's number.
    pub group: Option<u16>,
}

/// How long a stream waited to send, by what it waited for, µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamWaits {
    /// For its connection's turn, or for room in the buffer that it is sent from.
    pub scheduling_us: u64,
    /// For packets that are spaced out.
    pub pacing_us: u64,
    /// For room in the congestion window.
    pub congestion_us: u64,
    /// For the peer to allow more on the connection.
    pub connection_flow_us: u64,
    /// For the peer to allow another stream, before it was opened.
    pub stream_number_us: u64,
    /// For the peer to allow more on the stream.
    pub stream_flow_us: u64,
    /// For something to send.
    pub application_us: u64,
}

/// Where a connection goes.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    /// What the handshake asks for, where the transport names servers.
    pub(crate) server_name: String,
}

/// A piece of a stream to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) bytes: &'a [u8],
    /// The stream's first.
    pub(crate) opens: bool,
    /// The stream ends with its last byte.
    pub(crate) finishes: bool,
}

/// Connections with streams. Nothing blocks but [`Multiplexer::wait`]; nothing is held that grows with
/// what a peer leaves unread.
pub(crate) trait Multiplexer {
    /// Begins a connection.
    fn connect(&mut self, to: &Destination) -> std::io::Result<Link>;
    /// Moves bytes, and waits for something to happen for so long at most.
    fn wait(&mut self, at_most: Duration) -> std::io::Result<()>;
    /// What happened next.
    fn poll_event(&mut self) -> Option<(Link, LinkEvent)>;
    /// The other end's address, of a connection that stands.
    fn remote(&mut self, link: Link) -> Option<SocketAddr>;
    /// Opens a stream of both directions; `None` when the other end has no room for one now.
    fn open_stream(&mut self, link: Link) -> Option<u64>;
    /// Opens a stream that only sends; `None` also where the transport has none.
    fn open_one_way(&mut self, link: Link) -> Option<u64>;
    /// Takes the beginning of a piece, says how much; the end is taken with the last byte. `None` when
    /// nothing is taken now: a [`LinkEvent::Writable`] follows.
    fn send(&mut self, link: Link, stream: u64, sending: Sending<'_>) -> Option<usize>;
    /// Wants no more of a stream; nothing of it will be told. The other end is told the code where the transport
    /// has codes.
    fn stop(&mut self, link: Link, stream: u64, code: u64);
    /// Sends no more of a stream that the other end has stopped, and tells it so where the transport doesn't by itself.
    fn reset(&mut self, _link: Link, _stream: u64, _code: u64) {}
    /// Gives a stream up, both ways, likewise.
    fn abort(&mut self, link: Link, stream: u64, code: u64);
    /// Bytes of a stream that are at the other end by now, no more than they are; `None` where the
    /// transport tells of each as [`LinkEvent::Delivered`], or nothing is known. It may be asked when the
    /// connection's end is told.
    fn delivered_bytes(&mut self, _link: Link, _stream: u64) -> Option<u64> {
        None
    }
    /// Whether deliveries are known only when [`Multiplexer::delivered_bytes`] is called. [`LinkEvent::Delivered`] then
    /// tells the end of a stream alone.
    fn tells_deliveries_late(&self) -> bool {
        false
    }
    /// Acknowledgements that have come on a connection, where the transport counts them.
    fn received_acks(&mut self, _link: Link) -> Option<u64> {
        None
    }
    /// Bytes that a connection has told as delivered, and that its other end hasn't acknowledged.
    fn unacknowledged_bytes(&mut self, _link: Link) -> u64 {
        0
    }
    /// From now on it is watched what streams wait for.
    fn watch_waits(&mut self) {}
    /// What a stream has waited for, once: then it is forgotten. `None` where that isn't known.
    fn take_waits(&mut self, _link: Link, _stream: u64) -> Option<StreamWaits> {
        None
    }
    /// Whether what it is lent isn't copied: pieces may then be as long as that is.
    fn lends(&self) -> bool {
        false
    }
    /// What senders will send from: it needn't be copied where a transport can do without.
    fn lend(&mut self, _block: &Arc<Vec<u8>>) {}
    /// Lets the last words of closed connections leave.
    fn flush(&mut self) {}
    /// Ends a connection once what was sent has left; [`LinkEvent::Ended`] follows.
    fn close(&mut self, link: Link);
}
