//! What a netperf test is, as its client was asked for it.

use std::net::IpAddr;
use std::path::PathBuf;

use linerate_measure::plan::Family;

/// Where a netserver is, and how it is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlan {
    /// Host name or address.
    pub host: String,
    /// TCP port of the control connection, 12865 by custom.
    pub port: u16,
    /// The address family to use; absent: whichever the name resolves to first.
    pub family: Option<Family>,
    /// The local address of the control connection; absent: the kernel's choice.
    pub local: Option<IpAddr>,
    /// The interface of a link-local address of this end, by its number, which data connections go over, too; 0:
    /// that of the host's address.
    pub local_interface: u32,
    /// The local port of the control connection; 0: the kernel's choice.
    pub local_port: u16,
    /// The passphrase that the server requires first (`-Z`).
    pub passphrase: Option<String>,
    /// Speak in the 256-byte messages of netperf 2.5 and before, not the 656-byte ones of 2.6 and
    /// later.
    pub short_messages: bool,
    /// The processor that the server shall bind itself to (`-T`).
    pub server_cpu: Option<u32>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestKind {
    /// The client sends.
    Send,
    /// The client sends a file by sendfile(2) (TCP_SENDFILE).
    SendFile,
    /// The server sends (TCP_MAERTS).
    Receive,
    /// Requests and responses (TCP_RR, UDP_RR).
    RequestResponse,
    /// A connection for every request and response (TCP_CRR).
    ConnectRequestResponse,
    /// Connections that carry nothing (TCP_CC).
    Connect,
}

impl TestKind {
    /// Whether what is counted is transactions rather than bytes.
    pub fn has_transactions(self) -> bool {
        !matches!(self, Self::Send | Self::SendFile | Self::Receive)
    }

    /// Whether connections come and go.
    pub fn connects(self) -> bool {
        matches!(self, Self::ConnectRequestResponse | Self::Connect)
    }
}

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestTransport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// When a test ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestEnd {
    /// After so many seconds (`-l`).
    Seconds(u32),
    /// After so many bytes in bulk, or transactions (`-l` with a negative number).
    Units(u32),
    /// When it is interrupted (`-l 0`). The server goes on until its connection ends.
    Interrupt,
}

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPlan {
    /// What is done.
    pub kind: TestKind,
    /// What carries it.
    pub transport: TestTransport,
    /// The family of the data connection; absent: the control connection's.
    pub family: Option<Family>,
    /// When it ends.
    pub end: TestEnd,
    /// Bytes of a request (`-r`).
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// Requests on their way at once beyond the first (`-b`).
    pub burst: u32,
    /// This end.
    pub local: EndPlan,
    /// The server's end.
    pub remote: EndPlan,
    /// Length of a sample, for interim results (`-D`); absent: no samples.
    pub interval_ns: Option<u64>,
    /// Wait between set-up and the start of data (`-s`).
    pub wait_s: u32,
    /// Local ports of CRR's connections, first and last (`-p`). Absent: the kernel's choice, or all from this
    /// end's port on where it has one.
    pub source_ports: Option<(u16, u16)>,
    /// How long a response is awaited over UDP (`-e`); absent: one second.
    pub timeout_ns: Option<u64>,
    /// The file that TCP_SENDFILE sends, over and over; absent: one in memory.
    pub file: Option<PathBuf>,
    /// Whether each send (or receive) of bulk is timed at this end. Datagrams then leave one a call;
    /// receiving them isn't timed.
    pub times_calls: bool,
    /// Whether this end asks again and again in place of sleeping until something comes, which takes
    /// a whole processor; requests and responses only.
    pub busy_poll: bool,
    /// Whether the kernel is asked about the one TCP connection when data is over.
    pub reads_tcp_info: bool,
    /// What both ends are asked for.
    pub options: TestOptions,
}

impl TestPlan {
    /// A test of 10 s with the original's defaults, but that one-way UDP is routed.
    pub fn new(kind: TestKind, transport: TestTransport) -> Self {
        Self {
            kind,
            transport,
            family: None,
            end: TestEnd::Seconds(10),
            request_bytes: 1,
            response_bytes: 1,
            burst: 0,
            local: EndPlan::default(),
            remote: EndPlan::default(),
            interval_ns: None,
            wait_s: 0,
            source_ports: None,
            timeout_ns: None,
            file: None,
            times_calls: false,
            busy_poll: false,
            reads_tcp_info: false,
            options: TestOptions { routed: true, ..TestOptions::default() },
        }
    }
}

/// What is asked of one end; absent: as that end does it by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndPlan {
    /// Bytes of a send (`-m`).
    pub send_bytes: Option<u32>,
    /// Bytes of a receive (`-M`).
    pub receive_bytes: Option<u32>,
    /// SO_SNDBUF (`-s`, `-S`).
    pub send_buffer_bytes: Option<u32>,
    /// SO_RCVBUF (`-s`, `-S`).
    pub receive_buffer_bytes: Option<u32>,
    /// The data socket's address: bound at this end, connected to at the server's.
    pub address: Option<IpAddr>,
    /// The data port (`-P`), at this end the first of connections that come and go; 0: any.
    pub port: u16,
    /// Sends at a pace (`-b`, `-w`).
    pub pacing: Option<Pacing>,
    /// TCP congestion control (`-K`).
    pub congestion: Option<String>,
    /// SO_PRIORITY (`-y`).
    pub priority: Option<u32>,
    /// The type-of-service byte (`-Y`).
    pub service: Option<u8>,
    /// Whether processor use is measured (`-c`, `-C`).
    pub cpu: bool,
    /// Processors of this end's machine, where they aren't to be counted (`-n`); of no effect for the
    /// server's.
    pub cpu_count: Option<u32>,
    /// The rate of the processor given with `-c` or `-C`; it changes nothing but what is reported.
    pub cpu_rate: Option<f32>,
    /// The processor that this end's load runs on (`-T`). The server's is
    /// [`ControlPlan::server_cpu`].
    pub bind_cpu: Option<u32>,
    /// Whether UDP sockets are connected (`-n`, `-N`). Ours always are.
    pub connected: bool,
    /// Alignment of the send buffers (`-a`, `-A`): told the server, of no effect here.
    pub send_alignment: Option<u32>,
    /// Alignment of the receive buffers: likewise.
    pub receive_alignment: Option<u32>,
    /// Offset of the send buffers (`-o`, `-O`): likewise.
    pub send_offset: Option<u32>,
    /// Offset of the receive buffers: likewise.
    pub receive_offset: Option<u32>,
    /// Buffers in the send ring (`-W`): likewise.
    pub send_width: Option<u32>,
    /// Buffers in the receive ring (`-W`): likewise.
    pub receive_width: Option<u32>,
    /// The file that send buffers are filled from (`-F`); the server's name has at most 31 bytes.
    pub fill_file: Option<String>,
    /// What is written to and read of the buffers (`-k`, `-K`).
    pub dirt: Option<Dirt>,
}

/// What is done to an end's buffers beside sending and receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirt {
    /// Bytes written before each send and each receive.
    pub dirty_bytes: u32,
    /// Bytes read before each receive, behind those.
    pub clean_bytes: u32,
}

/// Sends in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Sends (or requests) of one interval.
    pub burst: u32,
    /// Length of the interval.
    pub interval_us: u32,
}

/// Options of the data connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestOptions {
    /// TCP_NODELAY at both ends (`-D`).
    pub no_delay: bool,
    /// TCP_CORK at this end (`-C`).
    pub cork: bool,
    /// TCP_DEFER_ACCEPT at the server (`-a`).
    pub defer_accept: bool,
    /// SO_KEEPALIVE on the data connection (`-S`).
    pub keep_alive: bool,
    /// Whether packets may be routed (`-R 1`). Without it SO_DONTROUTE is set at this end and asked of the
    /// server.
    pub routed: bool,
    /// IP_MTU_DISCOVER: never fragment (`-f`).
    pub dont_fragment: bool,
    /// TCP Fast Open (`-F`), where this end sends first.
    pub fast_open: bool,
    /// SO_DEBUG at this end (`-g`), which takes the right to administer the network.
    pub debug: bool,
    /// Receive without copying (`-V`).
    pub no_copy: bool,
    /// IP_PKTINFO at the server (`-B`).
    pub packet_info: bool,
    /// TCP_MAXSEG (`-G`).
    pub mss_bytes: Option<u32>,
    /// SO_MAX_PACING_RATE (`-q`), bytes per second.
    pub most_bytes_per_s: Option<u64>,
    /// Multicast TTL (`-l`).
    pub multicast_ttl: Option<u32>,
}
