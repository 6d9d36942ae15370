//! The start of a load on several hosts at one moment: when it is, and how well it was kept.

use linerate_measure::run::ClockOffset;

use crate::host::HostClock;
use crate::schedule::Skew;

/// The shortest time between naming a start and the start, nanoseconds.
pub const LEAST_LEAD_NS: u64 = 50_000_000;

/// The time between naming a start and the start, in round trips of the slowest channel.
pub const LEAD_ROUND_TRIPS: u64 = 20;

/// A start that is later or earlier than this gets a note, nanoseconds.
pub const NOTED_LATENESS_NS: i64 = 5_000_000;

/// When all hosts are to start, on this machine's clock (nanoseconds since 1970, UTC): now and the greater
/// of 50 ms and 20 round trips of the slowest channel.
pub fn start_time(now_utc_ns: i64, round_trips_ns: impl IntoIterator<Item = u64>) -> i64 {
    let slowest_ns = round_trips_ns.into_iter().max().unwrap_or(0);
    let lead_ns = slowest_ns.saturating_mul(LEAD_ROUND_TRIPS).max(LEAST_LEAD_NS);
    now_utc_ns.saturating_add(i64::try_from(lead_ns).unwrap_or(i64::MAX))
}

/// A time of this machine's clock on a host's clock.
pub fn on_host(utc_ns: i64, offset: ClockOffset) -> i64 {
    utc_ns.saturating_add(offset.offset_ns)
}

/// A time of a host's clock on this machine's clock.
pub fn from_host(utc_ns: i64, offset: ClockOffset) -> i64 {
    utc_ns.saturating_sub(offset.offset_ns)
}

/// What a client whose start is given by its standard input (`--start-at -`) reads: the line without its
/// end.
pub fn render_start(utc_ns: i64) -> String {
    let (sign, ns) = (if utc_ns < 0 { "-" } else { "" }, utc_ns.unsigned_abs());
    format!("@{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// How late a host started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// The host's start less the named time, nanoseconds, both on this machine's clock; less than 0: too early.
    pub late_ns: i64,
    /// How far off that may be, nanoseconds: the bound of the clock's offset.
    pub bound_ns: u64,
}

/// How late a host started that was to start at a time of this machine's clock and says when it started by
/// its own.
pub fn lateness(start_utc_ns: i64, started_on_host_ns: i64, clock: HostClock) -> Lateness {
    let started_ns = from_host(started_on_host_ns, clock.offset);
    Lateness { late_ns: started_ns.saturating_sub(start_utc_ns), bound_ns: clock.offset.bound_ns }
}

/// Sums the latenesses of a cell's hosts up; none where there are none. With fewer than 100 hosts the 99th percentile
/// is the latest.
pub fn skew(latenesses: &[Lateness]) -> Option<Skew> {
    let mut late_ns: Vec<i64> = latenesses.iter().map(|lateness| lateness.late_ns).collect();
    late_ns.sort_unstable();
    // The nearest rank: the least value that so many of a hundred do not exceed.
    let rank = |percent: usize| late_ns.get((late_ns.len() * percent).div_ceil(100).max(1) - 1);
    Some(Skew {
        min_ns: *late_ns.first()?,
        p50_ns: *rank(50)?,
        p99_ns: *rank(99)?,
        max_ns: *late_ns.last()?,
        bound_ns: latenesses.iter().map(|lateness| lateness.bound_ns).max()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_50_ms_or_20_round_trips_ahead() {
        assert_eq!(start_time(1_000, []), 50_001_000);
        assert_eq!(start_time(1_000, [100, 2_000_000]), 50_001_000);
        assert_eq!(start_time(1_000, [10_000_000, 100]), 200_001_000);
        assert_eq!(start_time(i64::MAX, [u64::MAX]), i64::MAX);
    }

    #[test]
    fn lateness_is_told_on_the_controllers_clock() {
        let offset = ClockOffset { offset_ns: 7_000, bound_ns: 20 };
        let clock = HostClock { offset, round_trip_ns: 40 };
        assert_eq!(on_host(100, offset), 7_100);
        let late = lateness(100, 7_350, clock);
        assert_eq!(late, Lateness { late_ns: 250, bound_ns: 20 });
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let late = |late_ns| Lateness { late_ns, bound_ns: 3 };
        assert_eq!(skew(&[]), None);
        let all: Vec<_> = (1..=200).rev().map(late).collect();
        let expected = Skew { min_ns: 1, p50_ns: 100, p99_ns: 198, max_ns: 200, bound_ns: 3 };
        assert_eq!(skew(&all), Some(expected));
        let one = skew(&[late(-4)]).unwrap();
        assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (-4, -4, -4));
    }

    #[test]
    fn the_start_is_written_as_the_flag_reads_it() {
        assert_eq!(render_start(1_896_091_200_500_000_001), "@1896091200.500000001");
        assert_eq!(render_start(5), "@0.000000005");
    }
}
