//! The perf dialect as [`linerate_wire::perf`] has it: its client and its server over sockets.
//!
//! [`run_client`] does what a [`ClientPlan`] says and returns what came out; [`Server`] answers any
//! number of clients. Both are loops over a [`Multiplexer`](crate::transport::multiplexer), one a
//! thread, and know nothing of the transport below. How results are printed is the program's.

mod client;
mod placement;
mod quic;
mod server;
mod streams;
mod trust;

use std::net::SocketAddr;

pub use client::{ClientEvent, ClientPlan, Report, Tells, cannot_go_on, run_client};
pub use placement::{Placement, Urgency};
pub use server::{Asked, Delay, Server, ServerEvent, ServerPlan, TestReport};

pub use crate::transport::quic::{ConnectionIds, Mark};

pub use crate::socket::TcpCounts;
pub use crate::transport::multiplexer::{Ending, QuicStatistics, Statistics, StreamWaits};

/// What carries the streams.
#[derive(Clone, Debug)]
pub enum Carriage {
    /// QUIC.
    Quic(QuicOptions),
    /// Sealed frames over TCP.
    Tcp,
}

/// What QUIC connections are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicOptions {
    /// Whether a client asks for packets in clear after the handshake: they can be read and changed by
    /// anybody on the path. A server always agrees.
    pub clear: bool,
    /// Whether the congestion control is BBR and not CUBIC.
    pub bbr: bool,
    /// Whether packets are marked as able to carry congestion marks.
    pub ecn: bool,
    /// The differentiated-services code point of packets.
    pub dscp: u8,
    /// Whether packets leave as soon as the congestion window has room, without being spaced out.
    pub unpaced: bool,
    /// What stands in connection ids.
    pub ids: ConnectionIds,
    /// Whether a client speaks draft 29 of QUIC and not version 1. A server takes both.
    pub draft_29: bool,
    /// The longest UDP payload that a client's packets may have; absent: a jumbo frame's, where there are
    /// few connections that last, else an Ethernet frame's.
    pub mtu_most_bytes: Option<u16>,
    /// Whether CUBIC's slow start ends when the round-trip time grows (HyStart++, RFC 9406).
    pub hystart: bool,
}

/// What the dialect's ends give streams up with.
const NO_CODE: u64 = 0;

/// Where a client's connections go, and from where.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The server.
    pub remote: SocketAddr,
    /// Local addresses, dealt to the threads in turn; empty: of the kernel's choice.
    pub local: Vec<SocketAddr>,
    /// The name that connections ask for; empty: none.
    pub server_name: String,
    /// Whether each thread adds its number to that name.
    pub numbered_names: bool,
}

/// TLS as both ends speak it, for tests of what carries it.
#[cfg(test)]
pub(crate) fn configurations(
    suites: u8,
) -> Result<
    (std::sync::Arc<rustls::ClientConfig>, std::sync::Arc<rustls::ServerConfig>),
    crate::error::Error,
> {
    Ok((trust::client_config(None)?, trust::server_config(suites)?))
}

#[cfg(test)]
mod tests;
