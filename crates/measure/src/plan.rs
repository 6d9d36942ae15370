//! What was asked: a plan names a server and a workload.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::media::Media;
use crate::sample::Role;

mod check;
mod host;
pub mod limits;
mod local_address;
mod quic;
mod read;
mod tls;
mod transfer;
mod workload;

pub use check::{DATAGRAM_HEADER_BYTES, RR_HEADER_BYTES};
pub use host::{HostPort, parse_port};
pub use local_address::LocalAddress;
pub use quic::{Pacing, QuicOptions, QuicVersion};
pub use read::{Notation, WrittenPlan, read_plans};
pub use tls::{Cipher, Handshake, TlsOptions};
pub use transfer::{ConnectTransfer, TransferPattern};

/// The port a server listens on unless told otherwise, TCP and UDP alike.
pub const DEFAULT_PORT: u16 = 5250;

/// One measurement as it was asked: where, what, and under which name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The version of this document's format: `linerate.plan/1`.
    pub schema: String,
    /// The server's host name or address.
    pub host: String,
    /// The server's port, TCP and UDP.
    pub port: u16,
    /// The address family to use; absent: whichever the name resolves to first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// What is to be done.
    pub workload: Workload,
    /// What this end's sockets and threads are bound to.
    #[serde(default)]
    pub local: Local,
    /// Wait until no other client measures against this server.
    #[serde(default)]
    pub exclusive: bool,
    /// Start the load at this time (UTC, nanoseconds since 1970); absent: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at_utc_ns: Option<i64>,
    /// A title for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Free `key=value` marks, kept with the result.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

impl Plan {
    /// The name and version of the plan's JSON format.
    pub const SCHEMA: &'static str = "linerate.plan/1";

    /// This load against this server, and nothing else asked for.
    pub fn new(host: impl Into<String>, port: u16, workload: Workload) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            host: host.into(),
            port,
            family: None,
            workload,
            local: Local::default(),
            exclusive: false,
            start_at_utc_ns: None,
            title: None,
            tags: BTreeMap::new(),
        }
    }
}

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
}

impl Family {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::Ipv4 } else { Self::Ipv6 }
    }
}

/// What the sockets and threads of one end are bound to. It never crosses the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Local {
    /// Processors that the load's threads are pinned to, in turn; empty: wherever the kernel likes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The local addresses of connections, in turn: flow number i has number i modulo their count.
    /// Empty: whichever the kernel chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<LocalAddress>,
    /// The local ports that `connect` walks through, first and last; absent: the kernel's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ports: Option<(u16, u16)>,
    /// The network device of every connection (SO_BINDTODEVICE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_device: Option<String>,
    /// The file that the secrets of the load's connections are appended to (RFC 9850).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_log: Option<std::path::PathBuf>,
    /// The directory that the log of each QUIC connection goes to (qlog).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qlog: Option<std::path::PathBuf>,
    /// Whether a warm-up is looked for in the intervals, and left out of the rate that is compared and told over
    /// several runs. Counts, latencies and costs are of the whole measured part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finds_warm_up: bool,
}

/// The load itself; both ends derive their steps from this value alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Bulk transfer or request and response.
    pub kind: Kind,
    /// What carries it.
    pub transport: Transport,
    /// When it ends.
    pub end: End,
    /// Length of the warm-up that comes before the measured part and is left out of every sum.
    #[serde(default)]
    pub omit_ns: u64,
    /// Number of flows (in each direction, where there are two).
    pub flows: u32,
    /// The threads of both ends.
    #[serde(flatten)]
    pub threading: Threading,
    /// The rate that a stream keeps to; absent: as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What is done with the bytes.
    #[serde(flatten)]
    pub payload: Payload,
    /// Length of a sample.
    pub interval_ns: u64,
    /// Options for the sockets of both ends.
    #[serde(default)]
    pub socket: SocketOptions,
    /// Options for the connections of both ends, where they are QUIC's.
    #[serde(default, skip_serializing_if = "QuicOptions::is_default")]
    pub quic: QuicOptions,
    /// Options for the keys of connections, over TLS and QUIC.
    #[serde(default, skip_serializing_if = "TlsOptions::is_default")]
    pub tls: TlsOptions,
}

/// The threads that carry a load at each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threading {
    /// Threads that carry the flows at each end; absent: one per processor, at most one per flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Poll without sleeping, at both ends.
    #[serde(default)]
    pub busy_poll: bool,
}

/// What is done with a load's bytes beside carrying them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payload {
    /// How a stream's bytes are moved, where not by plain copies.
    #[serde(default)]
    pub variant: Variant,
    /// Send a pattern that depends on the position in the stream and check every received byte.
    #[serde(default)]
    pub verify: bool,
    /// Of a stream in both directions: one connection, or QUIC stream, carries a flow of each direction at the
    /// same time.
    #[serde(default)]
    pub duplex: bool,
}

/// Bulk transfer or request and response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Kind {
    /// Bulk transfer.
    Stream {
        /// Which way the bytes go.
        direction: Direction,
        /// Bytes of one send call, or of one datagram's payload.
        send_bytes: u32,
        /// Over UDP, at a rate: frames of datagrams up to that size. Each frame is sent at once when
        /// it is due. Absent: a stream without frames.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media: Option<Media>,
    },
    /// Requests out, responses back, over connections that stay.
    Rr {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How long a datagram's response is waited for before the transaction counts as lost.
        timeout_ns: u64,
        /// Requests that may be on their way at once in each flow; absent: 1, or where requests
        /// keep to a schedule [`limits::OUTSTANDING`]'s most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outstanding: Option<u32>,
        /// Flows that may have a request on its way at a time, over TCP and TLS in a closed loop; the
        /// others wait for their turn. Absent: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active_flows: Option<u32>,
        /// When requests are to be sent; absent: each as soon as a response has come (closed loop).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<Schedule>,
    },
    /// Connect, one request out, one response back, or a transfer, close; again. Each flow does one at a time.
    Connect {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How long a connection may take from its first packet to its close before it counts as
        /// timed out.
        timeout_ns: u64,
        /// Which end closes, and how.
        close: Closing,
        /// What each connection carries in the place of a request and a response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transfer: Option<ConnectTransfer>,
        /// How long each connection stays open when all has been carried; 0: not at all.
        #[serde(default, skip_serializing_if = "is_zero")]
        hold_ns: u64,
        /// When connections are to be begun; absent: each as soon as the last one is closed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schedule: Option<Schedule>,
    },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// When requests or connections are to begin, whatever the answers do (open loop).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// How many per second, all flows together.
    pub per_s: f64,
    /// How they follow each other.
    #[serde(default)]
    pub arrivals: Arrivals,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// At distances with an exponential distribution: a Poisson process, as many independent users
    /// make it.
    Poisson,
}

/// Which end closes a connection, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Closing {
    /// The client, in order (FIN): its port waits in TIME-WAIT (RFC 9293, section 3.6).
    #[default]
    Fin,
    /// The client, at once (RST): no port waits.
    Rst,
    /// The server, in order: its side waits in TIME-WAIT.
    Server,
}

/// Which way the bytes of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
    /// Both at once, each on flows of its own.
    Both,
}

impl Direction {
    /// The end that receives in a direction that isn't [`Direction::Both`].
    pub fn receiver(self) -> Role {
        if self == Self::Down { Role::Client } else { Role::Server }
    }

    /// The end that sends, likewise.
    pub fn sender(self) -> Role {
        if self == Self::Down { Role::Server } else { Role::Client }
    }
}

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP (RFC 9293).
    Tcp,
    /// TLS 1.3 over TCP (RFC 8446).
    Tls,
    /// UDP (RFC 768).
    Udp,
    /// QUIC version 1 (RFC 9000): each flow a stream.
    Quic,
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum End {
    /// After so much time, warm-up not counted.
    Time {
        /// The time.
        duration_ns: u64,
    },
    /// After so many bytes in each direction, over all its flows.
    Bytes {
        /// The bytes.
        bytes: u64,
    },
    /// After so many sends in each direction (stream) or transactions (rr), over all its flows.
    Count {
        /// The sends or transactions.
        count: u64,
    },
}

/// A rate to keep to, in bits of payload per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "over")]
pub enum Rate {
    /// All flows of a direction together.
    AllFlows {
        /// Bits of payload per second.
        bps: u64,
    },
    /// Each flow.
    EachFlow {
        /// Bits of payload per second.
        bps: u64,
    },
}

/// How a stream's bytes are moved. What isn't a plain copy does less work than an application
/// that makes or reads its bytes, so that its figures don't compare with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Variant {
    /// The sender's pages are lent to the kernel instead of copied (MSG_ZEROCOPY).
    pub zero_copy: bool,
    /// The sender's bytes come from the page cache (sendfile), the receiver's go nowhere (splice
    /// into /dev/null): no byte passes through the program.
    pub splice: bool,
    /// The receiver lets the kernel drop the bytes unread (MSG_TRUNC, tcp(7)).
    pub discard: bool,
}

/// Options for the sockets of both ends; absent: as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketOptions {
    /// TCP_NODELAY: small sends leave at once. Always on for request and response.
    pub no_delay: bool,
    /// TCP_CONGESTION.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF, as asked (the kernel doubles it).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// TCP_MAXSEG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u32>,
    /// The differentiated-services code point (RFC 2474), 0 to 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// UDP: one system call a datagram instead of segmentation offload (GSO, GRO).
    pub no_offload: bool,
}

/// Why a plan makes no sense. The text names the value and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct PlanError {
    /// The error text.
    pub text: String,
    /// The field of the plan to change; absent where the plan can't be read.
    pub field: Option<&'static str>,
}
