//! The samples and the report of a client.

use linerate_measure::Sample;
use linerate_measure::dialect::SampleExtension;
use linerate_measure::dialect::perf::Interval;

use super::*;

fn own(sample: &Sample) -> Interval {
    match sample.extension {
        Some(SampleExtension::Perf(own)) => own,
        _ => Interval::default(),
    }
}

fn sum(samples: &[Sample], figure: impl Fn(&Sample) -> Option<u64>) -> Option<u64> {
    Some(samples.iter().filter_map(figure).sum())
}

#[test]
fn samples_follow_each_other_and_add_up_to_the_report() {
    let server = server();
    let shape = Shape { upload: 3_000, download: 20_000, timed: false, block_bytes: 65_536 };
    for carriage in [Carriage::Quic(QuicOptions::default()), Carriage::Tcp] {
        let plan = ClientPlan {
            carriage,
            threads: 2,
            shape,
            repeats_streams: true,
            runs_for: Some(Duration::from_secs(1)),
            tells: Tells { interval_ns: Some(200_000_000), ..Tells::default() },
            latency_limit: 1_000_000,
            ..three_connections(server.address(), false)
        };
        let mut samples = Vec::new();
        let mut tell = |event| {
            if let ClientEvent::Sample(sample) = event {
                samples.push(*sample);
            }
        };
        let report = run_client(&plan, &mut tell, &Cancel::default()).expect("it goes on");
        let totals = report.totals();
        assert!(samples.len() >= 2, "{samples:?}");
        assert_eq!(samples[0].from_ns, 0);
        for (before, after) in samples.iter().zip(&samples[1..]) {
            assert_eq!((before.to_ns, before.index + 1), (after.from_ns, after.index));
        }
        assert_eq!(sum(&samples, |sample| own(sample).streams), totals.streams);
        assert_eq!(sum(&samples, |sample| own(sample).connections), totals.connections);
        let sent = |sample: &Sample| sample.sent.map(|sent| sent.bytes);
        assert_eq!(sum(&samples, sent), totals.uploaded_bytes);
        let received = |sample: &Sample| sample.received.map(|received| received.bytes);
        assert_eq!(sum(&samples, received), totals.downloaded_bytes);
        assert_eq!(totals.latency_us.map(|latency| latency.count), totals.streams);
        let own = &report.own;
        assert_eq!(own.host.ran_on_cpus.len(), 2);
        let cpu = own.cpu.expect("threads tell what they used");
        assert!(cpu.user_s + cpu.system_s > 0.0);
        let waiting = own.waiting.expect("threads tell how they waited");
        assert!(waiting.sleeps + waiting.looks > 0, "{waiting:?}");
        assert!(own.latency_hdr.is_some());
    }
}
