//! The two clocks of this machine, and both as the machines of `wire` take them.

use linerate_wire::Now;

pub(crate) use linerate_system::clock::{MILLISECOND_NS, SECOND_NS, monotonic_ns, utc_ns};

/// Both clocks, for a state machine.
pub(crate) fn now() -> Now {
    Now { monotonic_ns: monotonic_ns(), utc_ns: utc_ns() }
}

/// The time, UTC, at which the monotonic clock showed this.
pub(crate) fn utc_of(at_ns: u64) -> i64 {
    utc_ns().saturating_sub_unsigned(monotonic_ns().saturating_sub(at_ns))
}
