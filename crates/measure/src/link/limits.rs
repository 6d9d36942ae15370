//! The limits that a [`Link`](super::Link) is held against. Each range includes both its ends.

use std::ops::RangeInclusive;

/// The largest packet: IPv6 needs 1280 bytes (RFC 8200, section 5); no IP packet is longer.
pub const MTU_BYTES: RangeInclusive<u64> = 1280..=65_535;
/// Delay, jitter and what reordering adds: up to a minute.
pub const DELAY_NS: u64 = 60 * 1_000_000_000;
/// Rate: 1 kbit/s to 1 Tbit/s.
pub const RATE_BPS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;
/// Packets in a queue.
pub const QUEUE_PACKETS: RangeInclusive<u64> = 1..=1_000_000;
/// Bytes in a queue.
pub const QUEUE_BYTES: RangeInclusive<u64> = 1..=1 << 30;
/// The queue where the description gives a rate but no queue, as that of Linux's devices.
pub const QUEUE_DEFAULT_PACKETS: u64 = 1000;
/// Bytes in flight, each way: rate times delay.
pub const FLIGHT_BYTES: u64 = 1 << 30;
/// Changes of a description.
pub const CHANGES: usize = 100_000;
/// When a change comes: within 30 days.
pub const CHANGE_AT_NS: RangeInclusive<u64> = 1..=30 * 86_400 * 1_000_000_000;
/// Losses in a row.
pub const LOSSES_IN_A_ROW: RangeInclusive<u64> = 1..=1_000_000;
/// Bytes of a description's text.
pub const TEXT_BYTES: usize = 16 << 20;
/// Letters of a description's name.
pub const NAME_LETTERS: usize = 200;
