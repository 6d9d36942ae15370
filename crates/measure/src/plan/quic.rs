//! What can be asked of QUIC connections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::QUIC_MTU_BYTES;

/// Options for QUIC connections; absent: as RFC 9000 and RFC 9002 recommend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QuicOptions {
    /// Flows that share a connection, each a stream of it.
    pub streams: u32,
    /// The congestion window that a connection begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window_bytes: Option<u32>,
    /// What a receiver lets each stream have on its way (flow control).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window_bytes: Option<u32>,
    /// What a receiver lets all streams of a connection have on their way together (flow control).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_window_bytes: Option<u32>,
    /// The length of every full UDP payload; absent: found out (RFC 8899), up to what the
    /// route's MTU has room for, 8972 bytes over IPv4 and 8952 over IPv6 at most; up to 1472 and
    /// 1452 with `datagrams`, more than 64 connections, or connections that come and go; and where
    /// these say less than 512 KiB, 1200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// A receiver acknowledges at least every so many packets (RFC 9000 has it every second); absent:
    /// whatever the receiver likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_packets: Option<u32>,
    /// Send without marks of explicit congestion notification (RFC 9000, section 13.4).
    pub no_ecn: bool,
    /// The version that connections speak.
    #[serde(skip_serializing_if = "QuicVersion::is_default")]
    pub version: QuicVersion,
    /// How packets are spaced out.
    #[serde(skip_serializing_if = "Pacing::is_default")]
    pub pacing: Pacing,
    /// A connection on which no packet arrives for so long has ended (RFC 9000, section 10.1); absent: 4 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// How long a receiver may keep an acknowledgement back, which it does no longer than the round trip
    /// or 25 ms, whichever is more; absent: 25 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay_ns: Option<u64>,
    /// How many packets out of order a receiver lets pass before it acknowledges at once; 0: any number;
    /// absent: whatever the receiver likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_reordering: Option<u32>,
    /// The longest UDP payload that is looked for (RFC 8899); absent: as `mtu_bytes` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_most_bytes: Option<u32>,
    /// Flows go in datagrams (RFC 9221), not in streams.
    pub datagrams: bool,
    /// Flows go in streams of one direction (RFC 9000, section 2.1).
    pub unidirectional: bool,
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuicVersion {
    /// Version 1 (RFC 9000).
    #[default]
    #[serde(rename = "v1")]
    V1,
    /// The last but five of its drafts, which some still speak (draft-ietf-quic-transport-29).
    #[serde(rename = "draft-29")]
    Draft29,
}

impl QuicVersion {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How packets are spaced out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "name")]
pub enum Pacing {
    /// By the congestion window over the round trip (RFC 9002, section 7.7).
    #[default]
    On,
    /// Not at all: what the congestion window has room for leaves at once.
    Off,
    /// Each connection at a rate of its own, as far as the congestion window allows.
    Rate {
        /// Bits of UDP payload per second.
        bps: u64,
    },
}

impl Pacing {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            streams: 1,
            initial_window_bytes: None,
            stream_window_bytes: None,
            connection_window_bytes: None,
            mtu_bytes: None,
            ack_packets: None,
            no_ecn: false,
            version: QuicVersion::V1,
            pacing: Pacing::On,
            idle_ns: None,
            ack_delay_ns: None,
            ack_reordering: None,
            mtu_most_bytes: None,
            datagrams: false,
            unidirectional: false,
        }
    }
}

impl QuicOptions {
    /// The congestion controls that connections can have.
    pub const CONGESTION: [&'static str; 3] = ["cubic", "reno", "bbr"];

    /// What may help where no handshake was answered. `None`: its packets were as short as every path carries.
    pub fn shorter_packets_advice(&self) -> Option<String> {
        let mtu_bytes =
            self.mtu_bytes.filter(|bytes| u64::from(*bytes) > *QUIC_MTU_BYTES.start())?;
        Some(format!(
            "packets of {mtu_bytes} bytes were asked for: if the path carries less, give a smaller --mtu \
             or none"
        ))
    }

    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
