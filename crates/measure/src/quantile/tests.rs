use super::*;
use crate::random::next_word;

/// A number above 0 and at most 1.
fn unit(state: &mut u64) -> f64 {
    ((next_word(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Latencies of one distribution: exponential, and of `stalls` of 1 the first of twenty that wait together.
struct Source {
    state: u64,
    stalls: f64,
    /// What the stall that goes on has left: requests, and time.
    left: (u32, f64),
}

impl Source {
    fn new(seed: u64, stalls: f64) -> Self {
        Self { state: seed, stalls, left: (0, 0.0) }
    }

    fn next_ns(&mut self) -> u64 {
        if self.left.0 == 0 && unit(&mut self.state) <= self.stalls {
            self.left = (20, 5e6 + 2e7 * unit(&mut self.state));
        }
        if self.left.0 > 0 {
            self.left.0 -= 1;
            return (self.left.1 * f64::from(self.left.0 + 1) / 20.0) as u64;
        }
        (50_000.0 - 20_000.0 * unit(&mut self.state).ln()) as u64
    }
}

/// Of a hundred runs of so many latencies and intervals: how many have an interval of the quantile, and how many one that
/// holds the quantile of the source.
fn coverage(name: &str, stalls: f64, latencies: u64, intervals: u64) -> (u32, u32) {
    let (_, q) = *QUANTILES.iter().find(|(known, _)| *known == name).unwrap();
    let mut long = Source::new(1_000_000, stalls);
    let mut of_source = Histogram::new();
    (0..400_000).for_each(|_| of_source.record_ns(long.next_ns()));
    let (truth, _) = of_source.value_at_rank((q * 400_000.0) as u64).unwrap();
    let (mut present, mut held) = (0, 0);
    for seed in 0..100 {
        let mut source = Source::new(seed, stalls);
        let mut all = Histogram::new();
        let mut parts = vec![IntervalHistogram::default(); intervals as usize];
        for part in &mut parts {
            for _ in 0..latencies / intervals {
                let ns = source.next_ns();
                all.record_ns(ns);
                part.record_ns(ns);
            }
        }
        if let Some(found) = interval_of(name, q, &all, &blocks_of(&parts)) {
            present += 1;
            held += u32::from((found.low_ns..=found.high_ns).contains(&truth));
        }
    }
    (present, held)
}

#[test]
fn intervals_of_independent_latencies_hold_the_quantile() {
    for (name, intervals) in [("p50", 20), ("p90", 100), ("p99", 20), ("p99", 10)] {
        let (present, held) = coverage(name, 0.0, 4_000, intervals);
        assert!(
            present == 100 && (92..=98).contains(&held),
            "{name} {intervals}: {held} of {present}"
        );
    }
}

#[test]
fn intervals_of_latencies_that_stall_together_hold_the_quantile() {
    for (name, latencies, intervals) in
        [("p90", 4_000, 20), ("p99", 12_000, 100), ("p99", 12_000, 10)]
    {
        let (present, held) = coverage(name, 0.002, latencies, intervals);
        assert!(
            present >= 95 && held * 100 >= present * 90,
            "{name} {intervals}: {held} of {present}"
        );
    }
}

#[test]
fn ranks_are_those_of_the_binomial_distribution() {
    // Those of the median as its own interval has them.
    for count in [6, 15, 100, 1_000] {
        let low = crate::comparison::rank(count, 0.95).unwrap() as u64;
        assert_eq!(ranks(count as u64, 0.5), Some((low, count as u64 + 1 - low)), "{count}");
    }
    assert_eq!((ranks(5, 0.5), ranks(0, 0.5), ranks(367, 0.99)), (None, None, None));
    // P(B(368, 0.99) = 368) is 2.48 %, so the upper end is the greatest.
    assert_eq!(ranks(368, 0.99), Some((360, 368)));
    // The normal distribution takes over without a jump.
    let (low, high) = ranks(99_999, 0.99).unwrap();
    let (next_low, next_high) = ranks(100_001, 0.99).unwrap();
    assert!(
        next_low.abs_diff(low) <= 3 && next_high.abs_diff(high) <= 3,
        "{low} {high} {next_low} {next_high}"
    );
}

/// A run's samples with such latencies, and the report's histogram.
fn samples_of(intervals: u32, each: u32) -> (String, Vec<Sample>) {
    let mut source = Source::new(7, 0.0);
    let mut all = Histogram::new();
    let sample = |index| {
        let mut part = IntervalHistogram::default();
        for _ in 0..each {
            let ns = source.next_ns();
            all.record_ns(ns);
            part.record_ns(ns);
        }
        Sample {
            index,
            to_ns: u64::from(index + 1) * 1_000_000_000,
            latency_hdr: Some(part.to_base64()),
            ..Sample::nothing(Role::Client)
        }
    };
    let samples = (0..intervals).map(sample).collect();
    (all.to_base64(), samples)
}

#[test]
fn a_run_has_the_intervals_that_its_samples_support() {
    let (all, samples) = samples_of(10, 200);
    let intervals = latency_intervals(Some(&all), &samples);
    let names: Vec<&str> = intervals.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["p50", "p90", "p99"]);
    let latency = Histogram::from_base64(&all).unwrap().latency().unwrap();
    let values = [latency.p50, latency.p90, latency.p99];
    for (one, value_ns) in intervals.iter().zip(values) {
        assert_eq!(Some(one.value_ns), value_ns);
        assert!(one.low_ns < one.value_ns && one.value_ns < one.high_ns, "{one:?}");
        assert_eq!((one.blocks, one.confidence), (10, 0.95));
    }
    let text = serde_json::to_string(&intervals).unwrap();
    assert_eq!(serde_json::from_str::<Vec<QuantileInterval>>(&text).unwrap(), intervals);
}

#[test]
fn no_intervals_where_there_is_too_little_or_it_cannot_be_read() {
    let (all, samples) = samples_of(7, 200);
    assert_eq!(latency_intervals(Some(&all), &samples), []);
    let (all, mut samples) = samples_of(10, 200);
    assert_eq!(latency_intervals(None, &samples), []);
    assert_eq!(latency_intervals(Some("?"), &samples), []);
    assert_eq!(latency_intervals(Some(&all), &[]), []);
    // Those of a peer that writes none.
    let older: Vec<Sample> =
        samples.iter().map(|one| Sample { latency_hdr: None, ..one.clone() }).collect();
    assert_eq!(latency_intervals(Some(&all), &older), []);
    samples[3].latency_hdr = Some("?".to_owned());
    assert_eq!(latency_intervals(Some(&all), &samples), []);
}
