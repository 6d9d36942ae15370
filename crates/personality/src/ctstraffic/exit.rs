//! Exit codes.

/// After help and after a usage error.
pub const USAGE: u8 = 13;

/// Where nothing failed, but the requested connections were not all made or not all completed. The
/// original returns 0.
pub const UNFINISHED: u8 = 254;

/// The run could not begin: an address that is in use, say, or no thread.
pub const NOT_STARTED: u8 = 255;

/// The most failed connections that an exit code counts.
const FAILED_MOST: u64 = 250;

/// The code of a run: how many connections failed. Linux has 8 bits for it, so more than 250 are 250.
/// 13 failed ones give 14, as 13 is a usage error.
pub fn exit_code(failed_connections: u64, is_finished: bool) -> u8 {
    match failed_connections.min(FAILED_MOST) as u8 {
        0 if !is_finished => UNFINISHED,
        USAGE => USAGE + 1,
        count => count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_count_failures_and_tell_usage_errors_apart() {
        assert_eq!([0, 1, 12, 13, 14, 250].map(|n| exit_code(n, true)), [0, 1, 12, 14, 14, 250]);
        assert_eq!((exit_code(256, true), exit_code(u64::MAX, false)), (250, 250));
        assert_eq!((exit_code(0, false), exit_code(3, false)), (UNFINISHED, 3));
    }
}
