//! The two clocks of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// One second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// One millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// Nanoseconds on the monotonic clock.
#[inline]
pub fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Nanoseconds since 1970, UTC; negative where the machine's clock stands before that.
pub fn utc_ns() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}
