//! What an emulated link did, and how well: one document, whatever happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Link;
use crate::run::Status;
use crate::summary::Latency;

/// What an emulated link did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "LinkReport")]
pub struct Report {
    /// The version of this document's format: `linerate.link/1`.
    pub schema: String,
    /// What was asked, seed included.
    pub link: Link,
    /// Between what it stood.
    pub form: Form,
    /// When it came up (UTC, nanoseconds since 1970).
    pub started_utc_ns: i64,
    /// How long it was up.
    pub elapsed_ns: u64,
    /// How its thread waited for the next packet.
    pub waiting: Waiting,
    /// The processor that its thread was pinned to; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What went to the right.
    pub to_right: Passed,
    /// What went to the left.
    pub to_left: Passed,
    /// How exact it was.
    pub accuracy: Accuracy,
    /// What the description asks for and this form can't do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_emulated: Vec<String>,
    /// Whether it can be trusted.
    pub status: Status,
}

impl Report {
    /// The name and version of the report's JSON format.
    pub const SCHEMA: &'static str = "linerate.link/1";
}

/// Between what a link stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Two network namespaces.
    Namespaces {
        /// The one on the left.
        left: String,
        /// The one on the right.
        right: String,
    },
    /// Sockets: clients are on the left, the target is on the right.
    #[serde(rename = "relay")]
    Forward {
        /// Where it listens.
        listen: String,
        /// Where it connects to.
        target: String,
        /// Whether it relays UDP.
        udp: bool,
        /// Whether it relays TCP.
        tcp: bool,
    },
}

/// How the thread waits for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// It never sleeps.
    Spinning,
    /// It sleeps until a packet comes or is due.
    Sleeping,
}

/// What went one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    /// What happened to the packets.
    pub counters: Counters,
    /// Bits of packets delivered per second, over the time from the first to the last; absent
    /// where fewer than two were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_bps: Option<f64>,
    /// The bits that flipped, in the order in which their packets left the queue; the first
    /// 10,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flips: Vec<Flip>,
}

/// What happened to packets that went one way. For TCP of a relay a packet is what was read at
/// once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counters {
    /// Came in.
    pub offered: u64,
    /// Their bytes, IP headers included (of a relay: payload).
    pub offered_bytes: u64,
    /// Went out, copies included.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Lost by chance.
    pub lost_at_random: u64,
    /// Dropped because the queue was full.
    pub lost_in_queue: u64,
    /// Dropped because more was in flight than the emulator holds: not part of the description.
    pub lost_in_emulator: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Delivered after one that came in later.
    pub reordered: u64,
    /// Packets with at least one flipped bit.
    pub corrupted: u64,
    /// Flipped bits.
    pub flipped_bits: u64,
    /// Marked "congestion experienced".
    pub marked: u64,
    /// Refused by the system at the far end (an IP header that corruption has spoiled, say).
    pub undeliverable: u64,
    /// Dropped by the system because the emulator didn't take them in time, and counted nowhere else;
    /// absent where it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_before: Option<u64>,
    /// Still on their way at the end.
    pub in_flight: u64,
}

/// A bit that flipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flip {
    /// The packet's number in its direction, from 0.
    pub packet: u64,
    /// Where in the packet the byte is, from 0.
    pub packet_offset_bytes: u32,
    /// Which bit of the byte, 0 the least.
    pub bit: u8,
    /// `tcp` or `udp`; absent for anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The port that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// The port that it went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// Where in the payload of TCP or UDP the byte is, from 0; absent where it isn't in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_offset_bytes: Option<u32>,
    /// Where in the TCP connection the byte is, from 0, modulo 2^32; absent where the
    /// connection's start wasn't seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_offset_bytes: Option<u32>,
    /// The first bytes of the payload, up to 32, before the flip, in hexadecimal: enough to tell
    /// which one of an application's packets it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_start: Option<String>,
}

/// How exact the link was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accuracy {
    /// How long after its time each packet left: what the emulator added to every delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_error_ns: Option<Latency>,
    /// How long each packet may have waited, at most, before the emulator saw it, which no delay
    /// error counts. Known only while it spins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen_ns: Option<Latency>,
    /// Whether its thread was in a real-time class (SCHED_FIFO), so that no other program delayed packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub real_time: bool,
    /// What counts as late.
    pub late_after_ns: u64,
    /// Packets that left later than that after their time.
    pub late: u64,
    /// How long packets were waiting that were late already.
    pub behind_ns: u64,
}
