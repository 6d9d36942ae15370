use super::*;

#[test]
fn the_line_is_the_originals() {
    let mut latencies_us: Vec<u32> = (0..2000).rev().map(|place| place + 100).collect();
    let line = LatencyLine::of(Latency::of(&mut latencies_us), 2_000, 2_000_000).unwrap();
    assert_eq!(
        line.render(),
        "Result: 1000 RPS, Latency,us 0th: 100, 50th: 1100, 90th: 1900, 99th: 2080, \
         99.9th: 2098, 99.99th: 2099, 99.999th: 2099, 99.9999th: 2099, Max: 2099\n"
    );
}

#[test]
fn requests_whose_latency_was_not_kept_count_all_the_same() {
    let line = LatencyLine::of(Latency::of(&mut [7, 5]), 1_000, 1_000_000).unwrap();
    assert_eq!((line.rps, line.latency.min, line.latency.max), (1_000, 5, 7));
    assert_eq!(LatencyLine::of(Latency::of(&mut []), 1_000, 1_000_000), None, "none was kept");
}

#[test]
fn less_than_one_a_second_is_none() {
    let latency = Latency::of(&mut [5]);
    assert_eq!(LatencyLine::of(latency, 1, 2_000_000), None);
    assert_eq!(LatencyLine::of(None, 0, 1), None);
    assert_eq!(LatencyLine::of(latency, 1, 0), None);
    assert_eq!(LatencyLine::of(latency, 1, 1_000_000).map(|line| line.rps), Some(1));
}
