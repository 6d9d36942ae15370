//! What happens in a test, as it happens, and what came out.

use std::net::SocketAddr;

use linerate_wire::iperf3::results::{CpuPercent, ServerOutput};
use linerate_wire::iperf3::{Cookie, Parameters, Protocol, Results, StreamResult};

use super::tail::{Ends, Late};
use super::{Failure, Keepalive};

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asked for the test.
    Client,
    /// It serves.
    Server,
}

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
    /// An interval is over.
    Interval(Box<Interval>),
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

/// What happened in an interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Seconds since the start, or since the end of the omitted time.
    pub start_s: f64,
    /// See `start_s`.
    pub end_s: f64,
    /// Whether it lies in the omitted time.
    pub omitted: bool,
    /// Whether the test's end cut it off.
    pub last: bool,
    /// In the order of [`Start::streams`].
    pub streams: Vec<StreamInterval>,
}

impl Interval {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// What happened on a stream in an interval.
#[derive(Clone, Copy, Debug)]
pub struct StreamInterval {
    /// Its number in results.
    pub id: u32,
    /// See [`Stream::socket`].
    pub socket: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Segments sent again, where this end sends over TCP.
    pub retransmits: Option<u64>,
    /// What the kernel says of a TCP connection at the interval's end.
    pub tcp: Option<TcpFigures>,
    /// Datagrams, where they are.
    pub datagrams: Option<DatagramFigures>,
}

/// What the kernel says of a TCP connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// Congestion window, bytes.
    pub snd_cwnd_bytes: u64,
    /// The peer's window, bytes; 0 where the kernel doesn't tell.
    pub snd_wnd_bytes: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its variation, microseconds.
    pub rtt_var_us: u32,
    /// Path MTU, bytes.
    pub pmtu_bytes: u32,
    /// Reordering seen.
    pub reorder: u32,
}

/// Datagrams of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DatagramFigures {
    /// Sent; or, where they are received, those that the other end has sent by the numbers that came.
    pub packets: u64,
    /// Lost; negative in an interval in which more came late than were lost; `None`: not known.
    pub lost: Option<i64>,
    /// Out of order.
    pub out_of_order: u64,
    /// Jitter (RFC 3550) at the end, seconds.
    pub jitter_s: f64,
}

impl DatagramFigures {
    /// Of so many that were sent: what was sent has neither loss nor jitter.
    pub fn sent(packets: u64) -> Self {
        Self { packets, lost: Some(0), ..Self::default() }
    }

    /// What an end's results say. Releases before 3.14 count what they had in the omitted time, too; `own_omitted` is
    /// what this end had in it.
    fn of_results(result: &StreamResult, own_omitted: u64, parameters: &Parameters) -> Self {
        let (packets, lost) = match result.omitted_packets.zip(result.omitted_errors) {
            // An original's datagrams that came late make fewer missing than were in the omitted time.
            Some((packets, errors)) => {
                let lost = result.errors.saturating_sub(errors).max(0);
                (result.packets.saturating_sub(packets), Some(lost))
            }
            None if parameters.omit_s == 0 => (result.packets, Some(result.errors)),
            // Their bytes are without that time, and all datagrams have one length.
            None if result.errors == 0 => {
                (result.bytes / u64::from(parameters.block_bytes.max(1)), Some(0))
            }
            // When they were lost isn't told, and the ends don't begin to count at the same datagram.
            None => (result.packets.saturating_sub(own_omitted), None),
        };
        Self { packets, lost, out_of_order: 0, jitter_s: result.jitter_s }
    }

    /// Percent of the datagrams that were lost; not known where there are none.
    pub fn lost_percent(&self) -> Option<f64> {
        let lost = self.lost.filter(|_| self.packets > 0)? as f64;
        Some(100.0 * lost / self.packets as f64)
    }

    /// With datagrams that never arrived and have a higher number than all that did.
    fn with_tail(self, tail: u64) -> Self {
        let lost = self.lost.map(|lost| lost.saturating_add_unsigned(tail));
        Self { packets: self.packets.saturating_add(tail), lost, ..self }
    }
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which end this is.
    pub role: Role,
    /// In the order of [`Start::streams`].
    pub streams: Vec<StreamReport>,
    /// Processor time of this end's test.
    pub cpu: CpuPercent,
    /// Of the other end's.
    pub remote_cpu: Option<CpuPercent>,
    /// The congestion control at this end; TCP only.
    pub congestion: Option<String>,
    /// At the other end.
    pub remote_congestion: Option<String>,
    /// What the server printed, where that was asked for and is known.
    pub server_output: Option<ServerOutput>,
}

impl Report {
    /// Adds what the other end counted, beside what this one told it; says which stream it didn't count.
    pub(super) fn add_remote(
        &mut self,
        theirs: &Results,
        own: &Results,
        parameters: &Parameters,
        late: &Late,
    ) -> Option<u32> {
        let mut missing = None;
        let role = self.role;
        for stream in &mut self.streams {
            let result = theirs.stream(stream.id);
            let own = own.stream(stream.id);
            let omitted = own.and_then(|own| own.omitted_packets).unwrap_or(0);
            let seconds = stream.local.seconds;
            stream.remote =
                result.map(|result| Totals::of_results(result, omitted, parameters, seconds));
            if let (Some(remote), Some((result, own))) = (&mut stream.remote, result.zip(own)) {
                match stream.sends {
                    true => remote.bytes = result.received_of(own),
                    false => stream.local.bytes = own.received_of(result),
                }
                let ends = Ends { sends: stream.sends, role, own, theirs: result };
                let tail = ends.tail(parameters, late);
                let receiver = if stream.sends { remote } else { &mut stream.local };
                receiver.datagrams = receiver.datagrams.map(|figures| figures.with_tail(tail));
            }
            missing = missing.or((result.is_none()).then_some(stream.id));
        }
        self.remote_cpu = Some(theirs.cpu_percent);
        self.remote_congestion.clone_from(&theirs.congestion_used);
        self.server_output.clone_from(&theirs.server_output);
        missing
    }
}

/// What came out of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamReport {
    /// Its number in results.
    pub id: u32,
    /// See [`Stream::socket`].
    pub socket: u32,
    /// Whether this end sends.
    pub sends: bool,
    /// What this end counted.
    pub local: Totals,
    /// What the other end says it counted.
    pub remote: Option<Totals>,
    /// Extremes of the intervals' figures, of a TCP connection that this end sends on.
    pub tcp: Option<TcpExtremes>,
}

impl StreamReport {
    /// What the sending end counted.
    pub fn sender(&self) -> Option<&Totals> {
        if self.sends { Some(&self.local) } else { self.remote.as_ref() }
    }

    /// What the receiving end counted.
    pub fn receiver(&self) -> Option<&Totals> {
        if self.sends { self.remote.as_ref() } else { Some(&self.local) }
    }
}

/// One end's totals of a stream, without the omitted time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Bytes sent or received.
    pub bytes: u64,
    /// Seconds that were counted.
    pub seconds: f64,
    /// Segments sent again, where the sender knows.
    pub retransmits: Option<u64>,
    /// Datagrams, where they are.
    pub datagrams: Option<DatagramFigures>,
}

impl Totals {
    /// What an end's results say; `seconds` is taken where they don't tell. See [`DatagramFigures::of_results`].
    pub(super) fn of_results(
        result: &StreamResult,
        own_omitted: u64,
        parameters: &Parameters,
        seconds: f64,
    ) -> Self {
        let udp = parameters.protocol == Protocol::Udp;
        Self {
            bytes: result.bytes,
            seconds: result.seconds().filter(|seconds| *seconds > 0.0).unwrap_or(seconds),
            retransmits: result.retransmits,
            datagrams: udp.then(|| DatagramFigures::of_results(result, own_omitted, parameters)),
        }
    }
}

/// Extremes of a TCP connection's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpExtremes {
    /// Largest congestion window, bytes.
    pub max_snd_cwnd_bytes: u64,
    /// Largest window of the peer, bytes.
    pub max_snd_wnd_bytes: u64,
    /// Largest round-trip time, microseconds.
    pub max_rtt_us: u32,
    /// Smallest round-trip time, microseconds.
    pub min_rtt_us: u32,
    /// Mean of the intervals' round-trip times, microseconds.
    pub mean_rtt_us: u32,
    /// Reordering seen at the end.
    pub reorder: u32,
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

#[cfg(test)]
mod tests;
