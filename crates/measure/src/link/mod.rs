//! What a path between two machines does to packets: a description that can be written down, and
//! the report of a link that was emulated after it.
//!
//! A [`Link`] has two [`Direction`]s, one to the right and one to the left, each with a delay, a
//! rate, a queue and its faults, and [`Change`]s that come into force after a while. It is written
//! as TOML ([`Link::parse`]) or taken by name ([`profile`]). What the emulator then did stands in
//! a [`Report`].
//!
//! A packet meets the parts of a direction in this order: the queue and the rate; loss; corruption;
//! duplication; then delay, jitter and reordering, in flight.

mod check;
mod description;
pub mod limits;
mod profiles;
mod quantity;
pub mod report;

pub use profiles::{PROFILES, Profile, profile};
pub use report::Report;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a description can't be used: which field, what it says, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link description: {0}")]
pub struct LinkError(pub(crate) String);

/// A path between two machines, called left and right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// What the description calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the random numbers begin: the same seed gives the n-th packet the same fate.
    pub seed: u64,
    /// The largest packet, IP header included.
    pub mtu_bytes: u32,
    /// What happens to packets from left to right.
    pub to_right: Direction,
    /// What happens to packets from right to left.
    pub to_left: Direction,
    /// What becomes different later, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// From a time on, other values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// When, after the link came up.
    pub at_ns: u64,
    /// All values of the direction to the right from then on; absent: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_right: Option<Direction>,
    /// All values of the direction to the left from then on; absent: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_left: Option<Direction>,
}

/// What happens to packets that go one way. The default is a perfect wire: nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Direction {
    /// One way, without the queue.
    pub delay_ns: u64,
    /// How much the delay varies from packet to packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// The share of packets that get lost, each on its own, 0 to 1.
    pub loss: f64,
    /// After so many losses in a row the next packet gets through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses_in_a_row_max: Option<u32>,
    /// Loss that comes in bursts, beside `loss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_loss: Option<BurstLoss>,
    /// Packets that are held back and overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// The share of packets that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// Bits that flip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Corruption>,
    /// Bits per second, IP headers included; absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// How much may wait for the rate, beside the packet that is being sent; more is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Amount>,
    /// A packet that finds at least this much waiting is marked "congestion experienced" if its
    /// sender knows ECN (RFC 3168).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_at: Option<Amount>,
}

/// Some packets or some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// So many packets.
    Packets(u64),
    /// So many bytes of packets, IP headers included.
    Bytes(u64),
}

/// How the delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jitter {
    /// The width of the distribution; what it is depends on the distribution.
    pub width_ns: u64,
    /// How the variation is distributed.
    pub distribution: Distribution,
    /// Whether a packet may overtake another by it. If not, it waits for the one before.
    pub may_reorder: bool,
}

/// A distribution of jitter with a width w.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly between the delay less w and the delay plus w.
    #[default]
    Uniform,
    /// Normal, the delay its mean and w its standard deviation, cut off at 4 w and at no delay.
    Normal,
    /// The delay and more: w * (u^(-1/3) - 1) for u evenly between 0 and 1, a Pareto distribution
    /// of shape 3 that begins at 0 (of mean w/2 and a long tail), cut off at 100 w.
    Pareto,
}

/// The model of Gilbert and Elliott: a chain of two states, a good one and a bad one, that may
/// change with every packet, and in each state a share of packets that get lost.
///
/// Sources: E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39
/// (1960); E. O. Elliott, "Estimates of error rates for codes on burst-noise channels", ibid. 42
/// (1963). In their words `enter` is p, `leave` is r, `loss_good` is 1 - k, `loss_bad` is 1 - h.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLoss {
    /// The chance that the bad state follows the good one.
    pub enter: f64,
    /// The chance that the good state follows the bad one; the bad state lasts 1/leave packets.
    pub leave: f64,
    /// The share that gets lost in the good state.
    pub loss_good: f64,
    /// The share that gets lost in the bad state.
    pub loss_bad: f64,
}

impl BurstLoss {
    /// The share of packets that get lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.enter / (self.enter + self.leave);
        (1.0 - bad) * self.loss_good + bad * self.loss_bad
    }
}

/// Packets that are held back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reorder {
    /// The share of packets that are, 0 to 1.
    pub share: f64,
    /// How much longer they take.
    pub by_ns: u64,
}

/// Bits that flip; either `bit_error_rate` or `packets` is there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Corruption {
    /// The chance of every bit to flip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<f64>,
    /// The share of packets in which one bit flips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<f64>,
    /// Whether bits flip in the payload of TCP and UDP alone and the checksum is made to fit, so
    /// that only an end that knows the sent data can find them. If not, any bit of a packet may flip.
    pub repair_checksums: bool,
    /// Packets shorter than this are left alone.
    pub least_packet_bytes: u32,
}

#[cfg(test)]
mod tests;
