//! The two clocks of this machine, and both as the machines of `wire` take them.

use linerate_wire::Now;

pub(crate) use linerate_system::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns, utc_ns};

/// Both clocks, for a state machine.
///
/// The wall clock is read first. A thread that loses its processor in between then takes an earlier time by the wall
/// clock for when it sent a ping, which widens the bound on the clocks' offset and can't make it wrong.
pub(crate) fn now() -> Now {
    let utc_ns = utc_ns();
    Now { monotonic_ns: monotonic_ns(), utc_ns }
}

/// The time, UTC, at which the monotonic clock showed this.
pub(crate) fn utc_of(at_ns: u64) -> i64 {
    utc_ns().saturating_sub_unsigned(monotonic_ns().saturating_sub(at_ns))
}
