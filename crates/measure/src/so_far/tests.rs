use proptest::prelude::*;

use super::*;
use crate::plan::Transport;
use crate::sample::TcpStatus;

const SECOND_NS: u64 = 1_000_000_000;

fn sample(role: Role, index: u32) -> Sample {
    let from_ns = u64::from(index) * SECOND_NS;
    Sample { index, from_ns, to_ns: from_ns + SECOND_NS, ..Sample::nothing(role) }
}

fn received(role: Role, index: u32, bytes: u64) -> Sample {
    Sample { received: Some(Traffic { bytes, calls: Some(1) }), ..sample(role, index) }
}

#[test]
fn goodput_is_the_receivers_and_warm_up_is_left_out_once_it_is_over() {
    let mut so_far = SoFar::new(Workload::stream(Direction::Up, Transport::Tcp));
    assert_eq!(so_far.goodput_bps(Direction::Up), None);
    so_far.handle_sample(&Sample { warm_up: true, ..received(Role::Server, 0, 1_000) });
    assert_eq!(so_far.goodput_bps(Direction::Up), Some(8_000.0));
    assert!(so_far.is_warming_up());
    so_far.handle_sample(&received(Role::Client, 1, 77));
    so_far.handle_sample(&received(Role::Server, 1, 3_000));
    so_far.handle_sample(&received(Role::Server, 2, 5_000));
    assert_eq!(so_far.goodput_bps(Direction::Up), Some(32_000.0));
    assert!(!so_far.is_warming_up());
}

#[test]
fn latency_is_weighed_by_transactions() {
    let mut so_far = SoFar::new(Workload::rr(Transport::Tcp));
    let done = |index, count, mean| Sample {
        transactions: Some(count),
        latency_mean_ns: Some(mean),
        ..sample(Role::Client, index)
    };
    assert_eq!((so_far.transactions_per_s(), so_far.mean_latency_ns()), (None, None));
    so_far.handle_sample(&done(0, 300, 100.0));
    so_far.handle_sample(&done(1, 100, 500.0));
    assert_eq!(so_far.transactions_per_s(), Some(200.0));
    assert_eq!(so_far.mean_latency_ns(), Some(200.0));
}

#[test]
fn quantiles_are_those_of_all_intervals_so_far() {
    let mut so_far = SoFar::new(Workload::rr(Transport::Tcp));
    let with = |index, latencies: &[u64]| {
        let mut histogram = IntervalHistogram::default();
        latencies.iter().for_each(|ns| histogram.record_ns(*ns));
        Sample { latency_hdr: Some(histogram.to_base64()), ..sample(Role::Client, index) }
    };
    assert!(so_far.latencies().is_empty());
    so_far.handle_sample(&with(0, &[100; 396]));
    assert_eq!(so_far.latencies().quantile_ns(0.99), Some(100));
    so_far.handle_sample(&with(1, &[200; 4]));
    assert_eq!(so_far.latencies().quantile_ns(0.99), Some(100));
    so_far.handle_sample(&with(2, &[200; 10]));
    assert_eq!(so_far.latencies().quantile_ns(0.99), Some(200));
    so_far.handle_sample(&Sample { role: Role::Server, ..with(2, &[900; 999]) });
    let torn = Sample { latency_hdr: Some("torn".to_owned()), ..sample(Role::Client, 3) };
    so_far.handle_sample(&torn);
    assert_eq!((so_far.latencies().len(), so_far.latencies().quantile_ns(0.5)), (410, Some(100)));
}

#[test]
fn loss_is_what_receivers_know() {
    let mut so_far = SoFar::new(Workload::stream(Direction::Down, Transport::Udp));
    assert_eq!(so_far.loss_ratio(), None);
    let counts = |sent, received, lost| {
        Some(DatagramCounts { sent, received, lost, ..DatagramCounts::default() })
    };
    so_far.handle_sample(&Sample {
        datagrams: counts(Some(1_000), None, None),
        ..sample(Role::Server, 0)
    });
    assert_eq!(so_far.loss_ratio(), None);
    so_far.handle_sample(&Sample {
        datagrams: counts(None, Some(900), Some(100)),
        ..sample(Role::Client, 0)
    });
    assert_eq!(so_far.loss_ratio(), Some(0.1));
}

/// Both ends' samples of an upload that its receive window holds up.
fn held_by_window(index: u32) -> [Sample; 2] {
    let us = 1_000_000 * (u64::from(index) + 1);
    let tcp = TcpStatus {
        rtt_us: 20_000,
        min_rtt_us: Some(20_000),
        mss_bytes: 1_448,
        busy_us: Some(us),
        rwnd_limited_us: Some(us * 8 / 10),
        sndbuf_limited_us: Some(0),
        notsent_bytes: Some(1 << 20),
        ..TcpStatus::default()
    };
    let bytes = 3_000_000;
    let sent = FlowSample { sent_bytes: Some(bytes), tcp: Some(tcp), ..FlowSample::default() };
    let read = FlowSample {
        received_bytes: Some(bytes),
        tcp: Some(TcpStatus { receive_queue_bytes: Some(0), ..TcpStatus::default() }),
        ..FlowSample::default()
    };
    [
        Sample { flows: vec![sent], ..sample(Role::Client, index) },
        Sample { flows: vec![read], ..received(Role::Server, index, bytes) },
    ]
}

#[test]
fn a_limit_is_found_while_the_run_goes_on_however_long_it_is() {
    let mut so_far = SoFar::new(Workload::stream(Direction::Up, Transport::Tcp));
    assert!(so_far.limit(Direction::Up).is_none());
    for index in 0..3 * LOOKED_AT as u32 {
        held_by_window(index).iter().for_each(|sample| so_far.handle_sample(sample));
        if index > 2 {
            let limit = so_far.limit(Direction::Up).unwrap();
            assert_eq!(limit.cause, Cause::ReceiveWindow, "after {index} intervals");
            assert_eq!(so_far.flow_limit(0), Some(limit));
        }
    }
    assert_eq!(so_far.goodput_bps(Direction::Up), Some(24e6), "the sum is of all intervals");
    assert!(so_far.limit(Direction::Down).is_none());
}

proptest! {
    /// A peer may send any numbers.
    #[test]
    fn no_sample_is_too_strange(samples in proptest::collection::vec(any::<[u64; 6]>(), 0..90), kind in 0_usize..4) {
        let transport = [Transport::Tcp, Transport::Udp, Transport::Quic, Transport::Tls][kind];
        let mut so_far = SoFar::new(Workload::stream(Direction::Both, transport));
        for [from_ns, to_ns, bytes, count, flow, bits] in samples {
            let role = if bits & 1 == 0 { Role::Client } else { Role::Server };
            let flow = FlowSample {
                flow: flow as u32 % 4,
                sent_bytes: Some(bytes),
                received_bytes: Some(count),
                tcp: (bits & 2 == 0).then(|| TcpStatus {
                    busy_us: Some(count),
                    rwnd_limited_us: Some(from_ns),
                    mss_bytes: bytes as u32,
                    ..TcpStatus::default()
                }),
                ..FlowSample::default()
            };
            so_far.handle_sample(&Sample {
                from_ns,
                to_ns,
                warm_up: bits & 4 == 0,
                received: Some(Traffic { bytes, calls: None }),
                datagrams: Some(DatagramCounts { received: Some(bytes), lost: Some(count), ..DatagramCounts::default() }),
                flows: vec![flow],
                ..Sample::nothing(role)
            });
            prop_assert!(so_far.loss_ratio().is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
            prop_assert!(so_far.goodput_bps(Direction::Up).is_none_or(|bps| bps >= 0.0));
        }
    }
}
