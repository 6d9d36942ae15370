//! What the two ends of a test tell each other, whichever messages they say it in.

use std::net::IpAddr;

/// What the server does in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Receives (TCP_STREAM, UDP_STREAM).
    Receive,
    /// Sends (TCP_MAERTS).
    Send,
    /// Answers requests over one connection or association (TCP_RR, UDP_RR).
    Answer,
    /// Answers one request a connection, and closes it (TCP_CRR).
    AnswerOnce,
    /// Accepts connections and closes them (TCP_CC).
    Accept,
}

impl Part {
    /// Whether what is counted is transactions.
    pub fn has_transactions(self) -> bool {
        matches!(self, Self::Answer | Self::AnswerOnce | Self::Accept)
    }

    /// Whether connections come and go.
    pub fn connects(self) -> bool {
        matches!(self, Self::AnswerOnce | Self::Accept)
    }
}

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// How long a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many seconds.
    Seconds(u32),
    /// So many bytes, or transactions.
    Units(u32),
    /// Until something else ends it.
    Open,
}

impl Length {
    /// The bytes or transactions, where it is so many.
    pub fn units(self) -> Option<u64> {
        match self {
            Self::Units(count) => Some(count.into()),
            Self::Seconds(_) | Self::Open => None,
        }
    }

    pub(super) fn of(number: i32) -> Self {
        match number {
            0 => Self::Open,
            1.. => Self::Seconds(number.unsigned_abs()),
            _ => Self::Units(number.unsigned_abs()),
        }
    }

    pub(super) fn number(self) -> i32 {
        match self {
            Self::Open => 0,
            Self::Seconds(seconds) => i32::try_from(seconds).unwrap_or(i32::MAX),
            Self::Units(units) => i32::try_from(units).map_or(i32::MIN, |units| -units),
        }
    }
}

/// The family of data connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// As the control connection.
    Any,
}

/// What a server is asked for. What is absent is the server's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The server's part.
    pub part: Part,
    /// What carries the data.
    pub transport: Transport,
    /// Over which family.
    pub family: Family,
    /// How long.
    pub length: Length,
    /// Bytes of a request, at least 1 where there are requests.
    pub request_bytes: u32,
    /// Bytes of a response, likewise.
    pub response_bytes: u32,
    /// Bytes of a send.
    pub send_bytes: Option<u32>,
    /// Bytes of a receive.
    pub receive_bytes: Option<u32>,
    /// SO_SNDBUF.
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF.
    pub receive_buffer_bytes: Option<u32>,
    /// Widths, alignments and offsets of buffers, of which nothing depends.
    pub rings: Rings,
    /// The port to listen on; 0: any.
    pub port: u16,
    /// The address to listen on.
    pub address: Option<IpAddr>,
    /// The client's data port, where it was known before connecting.
    pub client_port: u16,
    /// The client's data address, where it was given.
    pub client_address: Option<IpAddr>,
    /// Sends of an interval, and its length in microseconds.
    pub pacing: Option<(u32, u32)>,
    /// TCP_NODELAY.
    pub no_delay: bool,
    /// Whether processor use shall be measured.
    pub cpu: bool,
    /// The processors' rate as given; 0: not given.
    pub cpu_rate: f32,
    /// Whether packets may be routed, and the congestion control be named.
    pub routed: bool,
    /// SO_KEEPALIVE.
    pub keep_alive: bool,
    /// TCP_DEFER_ACCEPT.
    pub defer_accept: bool,
    /// IP_MTU_DISCOVER.
    pub dont_fragment: bool,
    /// TCP Fast Open.
    pub fast_open: bool,
    /// IP_PKTINFO.
    pub packet_info: bool,
    /// UDP: connect the socket when the first datagram has come.
    pub connected: bool,
    /// Receive without copying.
    pub no_copy: bool,
    /// SO_PRIORITY.
    pub priority: Option<u32>,
    /// The type-of-service byte.
    pub service: Option<u8>,
    /// TCP congestion control, at most 15 letters.
    pub congestion: Option<String>,
    /// The file to fill buffers from, at most 31 letters.
    pub fill_file: Option<String>,
    /// What is written to and read of the server's buffers beside what goes over the network.
    pub dirt: Dirt,
}

impl Request {
    /// A request for ten seconds of this, and nothing else asked for.
    pub fn new(part: Part, transport: Transport) -> Self {
        Self {
            part,
            transport,
            family: Family::V4,
            length: Length::Seconds(10),
            request_bytes: 1,
            response_bytes: 1,
            send_bytes: None,
            receive_bytes: None,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            rings: Rings::default(),
            port: 0,
            address: None,
            client_port: 0,
            client_address: None,
            pacing: None,
            no_delay: false,
            cpu: false,
            cpu_rate: 0.0,
            routed: true,
            keep_alive: false,
            defer_accept: false,
            dont_fragment: false,
            fast_open: false,
            packet_info: false,
            connected: false,
            no_copy: false,
            priority: None,
            service: None,
            congestion: None,
            fill_file: None,
            dirt: Dirt::default(),
        }
    }
}

/// What an end writes to and reads of its buffers beside what goes over the network, in bytes;
/// absent: not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirt {
    /// Written before each send.
    pub send_bytes: Option<u32>,
    /// Written before each receive.
    pub receive_bytes: Option<u32>,
    /// Read before each receive, behind those that are written.
    pub clean_bytes: Option<u32>,
}

/// Widths, alignments and offsets of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Alignment of the send buffers.
    pub send_alignment: u32,
    /// Offset of the send buffers.
    pub send_offset: u32,
    /// Buffers in the send ring.
    pub send_width: u32,
    /// Alignment of the receive buffers.
    pub receive_alignment: u32,
    /// Offset of the receive buffers.
    pub receive_offset: u32,
    /// Buffers in the receive ring.
    pub receive_width: u32,
}

impl Default for Rings {
    fn default() -> Self {
        Self {
            send_alignment: 8,
            send_offset: 0,
            send_width: 0,
            receive_alignment: 8,
            receive_offset: 0,
            receive_width: 0,
        }
    }
}

/// Where the server listens, and what it will do. -1: not known, or not asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The port to connect or to send to.
    pub data_port: u16,
    /// SO_RCVBUF.
    pub receive_buffer_bytes: i32,
    /// Bytes of its receives.
    pub receive_bytes: i32,
    /// Buffers in its receive ring.
    pub receive_width: i32,
    /// SO_SNDBUF.
    pub send_buffer_bytes: i32,
    /// Bytes of its sends.
    pub send_bytes: i32,
    /// Buffers in its send ring.
    pub send_width: i32,
    /// Whether TCP_NODELAY is in force.
    pub no_delay: bool,
    /// Whether it measures processor use.
    pub cpu: bool,
    /// Its processors' rate.
    pub cpu_rate: f32,
    /// Sends of an interval, and its length in microseconds; both 0: no pace.
    pub pacing: (u32, u32),
    /// SO_PRIORITY; -2: refused.
    pub priority: i32,
    /// The type-of-service byte, likewise.
    pub service: i32,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            data_port: 0,
            receive_buffer_bytes: -1,
            receive_bytes: -1,
            receive_width: 1,
            send_buffer_bytes: -1,
            send_bytes: -1,
            send_width: 1,
            no_delay: false,
            cpu: false,
            cpu_rate: 0.0,
            pacing: (0, 0),
            priority: -1,
            service: -1,
        }
    }
}

/// What the server did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Bytes it received.
    pub bytes_received: u64,
    /// Calls that received, modulo 2^32.
    pub receive_calls: u32,
    /// SO_RCVBUF at the end; 0: not told.
    pub receive_buffer_bytes: i32,
    /// Bytes it sent.
    pub bytes_sent: u64,
    /// Calls that sent, modulo 2^32.
    pub send_calls: u32,
    /// SO_SNDBUF at the end; 0: not told.
    pub send_buffer_bytes: i32,
    /// Sends that failed.
    pub failed_sends: u32,
    /// Transactions, modulo 2^32.
    pub transactions: u32,
    /// Its time, in seconds; absent where what came is no time.
    pub elapsed_s: Option<f32>,
    /// Processor use, where it was measured.
    pub cpu: Option<Cpu>,
    /// Its processors; 0: not told.
    pub cpus: u32,
    /// Segments sent again; negative: not told.
    pub retransmits: i32,
    /// The congestion control in use, where it is told.
    pub congestion: Option<String>,
}

/// Processor use in percent, as the mean over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// All but idle.
    pub util: f32,
    /// In user mode.
    pub user: f32,
    /// In the kernel.
    pub system: f32,
    /// Waiting for I/O.
    pub iowait: f32,
    /// Serving hardware interrupts.
    pub irq: f32,
    /// Serving software interrupts.
    pub softirq: f32,
    /// How it was measured.
    pub method: u32,
    /// The busiest processor.
    pub peak_cpu: i32,
    /// Its use.
    pub peak: f32,
}

impl Cpu {
    /// What stands for a share that isn't known.
    pub const UNKNOWN: f32 = -1.0;

    /// Nothing is known but the whole, which is 0.
    pub fn unshared() -> Self {
        let unknown = Self::UNKNOWN;
        Self {
            user: unknown,
            system: unknown,
            iowait: unknown,
            irq: unknown,
            softirq: unknown,
            peak_cpu: -1,
            peak: unknown,
            ..Self::default()
        }
    }
}
