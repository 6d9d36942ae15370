use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

/// When each of so many sends goes out, ms, where each begins as soon as the one before is out.
fn sends_ms(settings: PaceSettings, sizes: &[u64]) -> Vec<u64> {
    let mut now_ns = 0;
    let mut pace = Pace::new(settings, now_ns);
    let mut at = |bytes: &u64| {
        now_ns = pace.due_ns(*bytes, now_ns);
        now_ns / MS
    };
    sizes.iter().map(&mut at).collect()
}

fn rate(bytes_per_s: u64) -> PaceSettings {
    PaceSettings::Rate { bytes_per_s, period_ms: 100 }
}

#[test]
fn without_a_limit_nothing_waits() {
    assert_eq!(sends_ms(PaceSettings::None, &[1; 4]), [0; 4]);
}

#[test]
fn a_period_holds_one_or_several_sends() {
    assert_eq!(sends_ms(rate(1000), &[100; 4]), [0, 100, 200, 300], "one a period");
    assert_eq!(sends_ms(rate(1000), &[50; 6]), [0, 0, 100, 100, 200, 200], "two a period");
    assert_eq!(sends_ms(rate(1000), &[200; 4]), [0, 200, 400, 600], "two periods a send");
    assert_eq!(sends_ms(rate(1000), &[300; 3]), [0, 300, 600], "three periods a send");
    assert_eq!(sends_ms(rate(1000), &[150; 5]), [0, 100, 300, 400, 600], "one and a half");
}

#[test]
fn whole_transfers_take_what_the_original_took() {
    // 200,000 bytes at 100,000 bytes a second: the first period's share isn't delayed.
    assert_eq!(sends_ms(rate(100_000), &[1000; 200]).last(), Some(&1900));
    assert_eq!(sends_ms(rate(100_000), &[30_000; 7]).last(), Some(&1800));
}

#[test]
fn a_send_before_its_time_waits_and_a_late_one_does_not() {
    let full = || {
        let mut limiter = RateLimiter::new(1000, 100, 0);
        assert_eq!(limiter.delay_ns(100, 0), 0);
        limiter
    };
    assert_eq!(full().delay_ns(100, 0), 100 * MS, "a period early");
    assert_eq!(full().delay_ns(100, 60 * MS), 40 * MS, "a part of a period early");
    assert_eq!(full().delay_ns(100, 100 * MS), 0, "in time");
    assert_eq!(full().delay_ns(100, 200 * MS), 0, "a period late");
    let mut late = RateLimiter::new(1000, 100, 0);
    assert_eq!(late.delay_ns(50, 250 * MS), 0, "half a share, two periods late");
    assert_eq!(late.delay_ns(100, 250 * MS), 0, "the periods that passed are not made up for");
    assert_eq!(late.delay_ns(100, 250 * MS), 50 * MS, "the third period ends at 300 ms");
}

#[test]
fn bursts_begin_with_the_send_that_waited() {
    let burst = PaceSettings::Burst { count: 4, delay_ms: 200 };
    let expected = [0, 0, 0, 200, 200, 200, 200, 400, 400, 400, 400, 600];
    assert_eq!(sends_ms(burst, &[1000; 12]), expected);
    let each = PaceSettings::Burst { count: 1, delay_ms: 5 };
    assert_eq!(sends_ms(each, &[1; 3]), [5, 10, 15]);
}

#[test]
fn a_rate_below_a_byte_a_period_is_seen() {
    assert_eq!((quantum_bytes(5, 100), quantum_bytes(10, 100)), (0, 1));
    assert_eq!(quantum_bytes(u64::MAX, u64::MAX), u64::MAX);
}

proptest! {
    #[test]
    fn the_mean_keeps_to_the_limit(
        bytes_per_s in 10_000_u64..10_000_000,
        period_ms in 1_u64..500,
        sizes in prop::collection::vec(1_u64..100_000, 20..200),
    ) {
        let settings = PaceSettings::Rate { bytes_per_s, period_ms };
        let quantum = quantum_bytes(bytes_per_s, period_ms);
        prop_assume!(quantum > 0);
        let at = sends_ms(settings, &sizes);
        prop_assert!(at.is_sorted());
        let before_last: u64 = sizes.iter().rev().skip(1).sum();
        let periods = at.last().unwrap() / period_ms;
        // Each period gives its share; the last send may take more than is left of it.
        let allowed = (periods + 1) * quantum + sizes.iter().max().unwrap();
        prop_assert!(before_last <= allowed, "{} in {} periods of {}", before_last, periods, quantum);
        prop_assert!(periods * quantum <= before_last + quantum, "too slow");
    }

    #[test]
    fn any_numbers_are_taken(rate: u64, period: u64, calls: Vec<(u64, u64)>) {
        let mut limiter = RateLimiter::new(rate, period, 0);
        for (bytes, now_ns) in calls {
            limiter.delay_ns(bytes, now_ns);
        }
    }
}
