//! Series of documents against the figures that these have.

use linerate_measure::run::Draft;
use linerate_measure::sample::{DatagramCounts, TcpStatus, Traffic};
use linerate_measure::{Direction, Plan, Transport, Workload};

use super::*;

const BEGAN_NS: i64 = 1_700_000_000_000_000_000;

fn sample(role: Role, index: u32, bytes: u64) -> Sample {
    let (from_ns, to_ns) = (u64::from(index) * 500_000_000, u64::from(index + 1) * 500_000_000);
    // Later readings of the clock waver.
    let utc_ns = BEGAN_NS + to_ns as i64 + i64::from(index) * 700_000;
    let traffic = Some(Traffic { bytes, calls: None });
    let (sent, received) = match role {
        Role::Client => (traffic, None),
        Role::Server => (None, traffic),
    };
    let warm_up = index == 0;
    Sample { index, from_ns, to_ns, utc_ns, sent, received, warm_up, ..Sample::nothing(role) }
}

fn run_of(samples: Vec<Sample>) -> Run {
    let plan = Plan::new("host", 5250, Workload::stream(Direction::Up, Transport::Tcp));
    let mut draft = Draft::new("ab".repeat(16), plan);
    draft.environment.started_utc_ns = Some(BEGAN_NS);
    draft.samples = samples;
    draft.into_run(Outcome::Complete, 0, None)
}

fn find<'a>(made: &'a RunSeries, metric: &str) -> Vec<&'a NewSeries> {
    made.series.iter().filter(|series| series.metric == metric).collect()
}

#[test]
fn rates_are_per_second_and_begin_where_the_interval_before_ends() {
    let samples = (0..4)
        .flat_map(|i| [sample(Role::Client, i, 125_000_000), sample(Role::Server, i, 62_500_000)]);
    let made = series_of(&run_of(samples.collect()), &[]);
    let [sent] = find(&made, "tx-Gbps")[..] else { panic!("{made:?}") };
    assert_eq!(sent.values, [2.0; 4]);
    assert_eq!((sent.source.as_str(), sent.unit.as_str()), ("linerate", "Gbit/s"));
    let labels = [("cstype", "client"), ("csid", "1")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(sent.labels, labels);
    let spans = made.timelines[sent.timeline].spans();
    let begin_ms = BEGAN_NS / 1_000_000;
    let expected =
        (0..4).map(|i| Span { begin_ms: begin_ms + i * 500, end_ms: begin_ms + i * 500 + 499 });
    assert_eq!(spans, expected.collect::<Vec<_>>());
    assert_eq!(find(&made, "rx-Gbps")[0].values, [1.0; 4]);
    assert_eq!(made.timelines.len(), 1, "series of equal times share them");
    let period = Span { begin_ms: begin_ms + 500, end_ms: begin_ms + 1999 };
    assert_eq!(made.period, Some(period), "a warm-up is not in the period");
    assert_eq!(made.primary_metric, "linerate::rx-Gbps");
}

#[test]
fn a_run_that_is_shorter_than_a_millisecond_has_its_rates() {
    for (from_ns, length_ns) in
        [(0, 400_000), (800_000, 400_000), (999_999, 1), (300_000, 1_500_000)]
    {
        let mut sample = sample(Role::Server, 0, length_ns);
        (sample.from_ns, sample.to_ns) = (from_ns, from_ns + length_ns);
        (sample.utc_ns, sample.warm_up) = (BEGAN_NS + (from_ns + length_ns) as i64, false);
        let made = series_of(&run_of(vec![sample]), &[]);
        let [received] = find(&made, "rx-Gbps")[..] else { panic!("{made:?}") };
        assert!((received.values[0] - 8.0).abs() < 1e-9, "{received:?}");
        assert!(made.period.is_some());
        assert_eq!(made.primary_metric, "linerate::rx-Gbps");
    }
}

/// Samples behind each other by their lengths in microseconds and their bytes; the first `warm_up` are warm-up.
fn samples_of(parts: &[(u64, u64)], warm_up: usize) -> Vec<Sample> {
    let mut from_ns = 0;
    let mut made = Vec::new();
    for (index, (length_us, bytes)) in (0..).zip(parts) {
        let to_ns = from_ns + length_us * 1000;
        let utc_ns = BEGAN_NS + 400_000 + to_ns as i64;
        let warm_up = index < warm_up as u32;
        let sample = sample(Role::Server, index, *bytes);
        made.push(Sample { from_ns, to_ns, utc_ns, warm_up, ..sample });
        from_ns = to_ns;
    }
    made
}

/// Bytes that a query over the period of a run finds, and its seconds.
fn bytes_of_period(made: &RunSeries) -> (f64, f64) {
    let [received] = find(made, "rx-Gbps")[..] else { panic!("{made:?}") };
    let period = made.period.unwrap();
    let ms = |span: &Span| (span.end_ms - span.begin_ms + 1) as f64;
    let spans = made.timelines[received.timeline].spans().iter().zip(&received.values);
    let inside = spans.filter(|(span, _)| period.begin_ms <= span.begin_ms);
    let bits: f64 = inside.map(|(span, gbps)| gbps * 1e6 * ms(span)).sum();
    (bits / 8.0, ms(&period) / 1e3)
}

#[test]
fn an_interval_of_microseconds_counts_with_its_neighbour_and_no_byte_is_lost() {
    let second = (1_000_000, 1_250_000);
    // A buffer fills in 50 us: 166 Gbit/s. It comes behind the warm-up, amid, or at the end.
    let burst = (50, 1_037_500);
    let cases = [
        (vec![second, burst, second, second], 1, 3_537_500_u64),
        (vec![second, burst, second, second], 2, 2_500_000),
        (vec![second, second, burst, burst, second], 1, 4_575_000),
        (vec![second, second, second, burst], 1, 3_537_500),
        (vec![burst, second, burst], 0, 3_325_000),
    ];
    for (parts, warm_up, measured_bytes) in cases {
        let made = series_of(&run_of(samples_of(&parts, warm_up)), &[]);
        let (bytes, _) = bytes_of_period(&made);
        let error = (bytes - measured_bytes as f64).abs() / measured_bytes as f64;
        assert!(error < 0.001, "{bytes} of {measured_bytes} in {parts:?}");
        let [received] = find(&made, "rx-Gbps")[..] else { panic!("{made:?}") };
        assert!(received.values.iter().all(|gbps| *gbps < 0.03), "{:?}", received.values);
    }
}

#[test]
fn intervals_that_are_all_short_have_their_own_values() {
    let made = series_of(&run_of(samples_of(&[(5_000, 100); 20], 0)), &[]);
    assert_eq!(find(&made, "rx-Gbps")[0].values.len(), 20);
}

#[test]
fn times_by_another_clock_are_moved_at_both_ends() {
    let run = run_of(vec![sample(Role::Client, 1, 1), sample(Role::Server, 1, 1)]);
    let (own, moved) = (series_of(&run, &[]), series_by_clock(&run, &[], 5_000_000_000));
    for (own, moved) in own.timelines.iter().zip(&moved.timelines) {
        let (own, moved) = (own.range().unwrap(), moved.range().unwrap());
        assert_eq!((moved.begin_ms, moved.end_ms), (own.begin_ms - 5000, own.end_ms - 5000));
    }
    assert_eq!(moved.period.unwrap().begin_ms, own.period.unwrap().begin_ms - 5000);
}

#[test]
fn the_other_ends_times_are_moved_by_the_clocks_offset() {
    let mut run = run_of(vec![sample(Role::Client, 0, 1), sample(Role::Server, 0, 1)]);
    let offset = linerate_measure::run::ClockOffset { offset_ns: 3_000_000_000, bound_ns: 1 };
    run.environment.clock_offset = Some(offset);
    run.samples[1].utc_ns += 3_000_000_000;
    let made = series_of(&run, &[]);
    assert_eq!(made.timelines.len(), 1, "{:?}", made.timelines);
    run.written_by = Role::Server;
    let made = series_of(&run, &[]);
    assert_eq!(made.timelines.len(), 1);
    let begin = made.timelines[0].range().unwrap().begin_ms;
    assert_eq!(begin, BEGAN_NS / 1_000_000 + 3000);
}

#[test]
fn flows_stand_apart_and_counters_become_differences() {
    let tcp =
        |again| TcpStatus { retransmitted_segments: again, rtt_us: 80, ..TcpStatus::default() };
    let flow = |flow, again| FlowSample {
        flow,
        sent_bytes: Some(1000),
        tcp: Some(tcp(again)),
        ..FlowSample::default()
    };
    let mut samples: Vec<Sample> = (0..3).map(|i| sample(Role::Client, i, 2000)).collect();
    for (sample, again) in samples.iter_mut().zip([3, 3, 10]) {
        sample.flows = vec![flow(0, again), flow(1, 0)];
    }
    let made = series_of(&run_of(samples), &[]);
    let again = find(&made, "tx-retry-sec");
    assert_eq!(again.len(), 2);
    assert_eq!(again[0].values, [6.0, 0.0, 14.0]);
    assert!(again[1].labels.contains(&("stream".to_owned(), "1".to_owned())));
    assert_eq!(find(&made, "tx-Gbps").len(), 2, "sums stand beside no parts");
    assert_eq!(find(&made, "rtt-us")[0].aggregation, Aggregation::Avg);
}

#[test]
fn iperf_has_its_own_names() {
    let mut sample = sample(Role::Server, 0, 1000);
    sample.datagrams =
        Some(DatagramCounts { received: Some(9), lost: Some(1), ..DatagramCounts::default() });
    let mut run = run_of(vec![sample]);
    run.dialect = Dialect::Iperf3;
    let made = series_of(&run, &[]);
    assert_eq!(find(&made, "rx-lost/sec")[0].values, [2.0]);
    assert!(made.series.iter().all(|series| series.source == "iperf"));
    let (new, cell, end) = single_run(&run, "{}".to_owned(), &Recorded::default());
    assert_eq!(new.cells.len(), 1);
    assert_eq!(cell.status, CellStatus::Done);
    assert_eq!(end.status, RunStatus::Complete);
    run.written_by = Role::Server;
    assert_ne!(run_name(&run), new.uuid);
}

#[test]
fn times_that_are_no_times_are_left_out() {
    let mut samples: Vec<Sample> = (0..3).map(|i| sample(Role::Client, i, 1)).collect();
    samples[1].to_ns = 0;
    samples[2].from_ns = u64::MAX;
    let made = series_of(&run_of(samples), &[]);
    assert_eq!(find(&made, "tx-Gbps")[0].values.len(), 1);
    let mut late = sample(Role::Client, 0, 1);
    late.utc_ns = i64::MIN;
    assert_eq!(series_of(&run_of(vec![late]), &[]), RunSeries::default());
}

/// A run of requests that both ends have counted, 250 in each half second.
fn run_of_requests(kind: Workload) -> Run {
    let mut samples = Vec::new();
    for role in [Role::Client, Role::Server] {
        for index in 0..4 {
            let mut one = sample(role, index, 1000);
            (one.transactions, one.warm_up) = (Some(250), false);
            samples.push(one);
        }
    }
    let mut run = run_of(samples);
    run.plan.workload = kind;
    run.summary.transactions_per_s = Some(500.0);
    run
}

#[test]
fn requests_are_counted_by_the_client_alone() {
    let run = run_of_requests(Workload::stream(Direction::Up, Transport::Tcp));
    let made = series_of(&run, &[]);
    let [counted] = find(&made, "transactions-sec")[..] else { panic!("{made:?}") };
    assert!(counted.labels.contains(&("cstype".to_owned(), "client".to_owned())));
    assert_eq!(counted.values, [500.0; 4]);
    assert_eq!(made.primary_metric, "linerate::transactions-sec");
    // A server's record of its own stands for itself.
    let mut of_server = run.clone();
    of_server.samples.retain(|sample| sample.role == Role::Server);
    of_server.written_by = Role::Server;
    assert_eq!(find(&series_of(&of_server, &[]), "transactions-sec").len(), 1);
    // Documents of both ends of one test count each end once.
    let both = series_of_documents(&[(&run, 0), (&of_server, 0)], &[]);
    assert_eq!(find(&both, "transactions-sec").len(), 1);
    assert_eq!(find(&both, "rx-Gbps").len(), find(&made, "rx-Gbps").len());
}

#[test]
fn a_figure_without_intervals_is_a_series_of_one_value() {
    let mut run = run_of((0..4).map(|index| sample(Role::Client, index, 125_000_000)).collect());
    run.summary.goodput_bps = Some(1.5e9);
    let made = series_of(&run, &[]);
    let [received] = find(&made, "rx-Gbps")[..] else { panic!("{made:?}") };
    assert_eq!(received.values, [1.5]);
    assert_eq!(made.timelines[received.timeline].range(), made.period);
    assert_eq!(made.primary_metric, "linerate::rx-Gbps");
}
