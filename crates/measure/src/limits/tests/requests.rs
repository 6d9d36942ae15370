//! Limits of requests and responses.

use super::*;

#[test]
fn what_became_of_requests_tells_the_place() {
    let idle = Facts::default();
    let even =
        Transactions { median_ns: 20_100_000.0, least_ns: 20_000_000.0, ..Default::default() };
    assert_eq!(transactions(&idle, even), (Place::Path, Cause::PathDelay));
    let fast = Transactions { median_ns: 30_000.0, least_ns: 20_000.0, ..Default::default() };
    assert_eq!(transactions(&idle, fast), (Place::Sender, Cause::BothCpus));
    let stalled = Transactions { stalled_share: 0.8, ..fast };
    assert_eq!(transactions(&idle, stalled), (Place::Path, Cause::Stalls));
    let stopped = Transactions { server_was_late: true, ..stalled };
    assert_eq!(transactions(&idle, stopped), (Place::Receiver, Cause::Stalls));
    let lossy = Transactions { lost_share: 0.5, ..stalled };
    assert_eq!(transactions(&idle, lossy), (Place::Path, Cause::Loss));
    let scheduled = Facts { keeps_rate: true, ..idle };
    assert_eq!(transactions(&scheduled, lossy), (Place::Sender, Cause::OwnPacing));
}

#[test]
fn requests_of_a_server_that_stood_still_stall_there() {
    let mut draft = transfer(Transport::Tcp, 4);
    let end = draft.plan.workload.end;
    draft.plan.workload = Workload { end, ..Workload::rr(Transport::Tcp) };
    assert!(matches!(draft.plan.workload.kind, Kind::Rr { .. }));
    let mut histogram = Histogram::new();
    for _ in 0..10_000 {
        histogram.record_ns(50_000);
    }
    for _ in 0..10 {
        histogram.record_ns(300_000_000);
    }
    let client = draft.client.as_mut().unwrap();
    client.latency_hdr = Some(histogram.to_base64());
    client.flows[0].transactions = Some(10_010);
    let late = Standstills { longest_ns: 300_000_000, at_ns: 1, total_ns: 3_000_000_000 };
    let disturbance = Disturbance { lateness: Some(late), ..Disturbance::default() };
    let server = |disturbance| {
        let mut draft = draft.clone();
        draft.server.as_mut().unwrap().disturbance = Some(Box::new(disturbance));
        let limit = finished(draft).summary.limits[0].clone();
        (limit.place, limit.cause)
    };
    assert_eq!(server(disturbance), (Place::Receiver, Cause::Stalls));
    let short = |all_ns| Disturbance { wakeup_delay_ns: Some(all_ns), ..Disturbance::default() };
    assert_eq!(server(short(2 * SECOND_NS)), (Place::Receiver, Cause::Stalls));
    assert_eq!(server(short(SECOND_NS)), (Place::Path, Cause::Stalls));
}

#[test]
fn a_path_with_jitter_is_no_processor_without_work() {
    let demands = |sender, receiver| Facts {
        evidence: LimitEvidence {
            demand_sender: Some(sender),
            demand_receiver: Some(receiver),
            ..LimitEvidence::default()
        },
        ..Facts::default()
    };
    let jitter =
        Transactions { median_ns: 50e6, least_ns: 20e6, p90_ns: Some(90e6), ..Default::default() };
    assert_eq!(transactions(&demands(0.001, 0.001), jitter), (Place::Path, Cause::PathDelay));
    assert_eq!(transactions(&demands(0.9, 0.1), jitter), (Place::Sender, Cause::BothCpus));
    let near = Transactions { median_ns: 500e3, least_ns: 200e3, ..jitter };
    assert_eq!(transactions(&demands(0.02, 0.02), near), (Place::Path, Cause::PathDelay));
    assert_eq!(transactions(&demands(0.4, 0.3), near), (Place::Sender, Cause::BothCpus));
    let again = |per_stall| Transactions {
        stalled_share: 0.8,
        sent_again_per_stall: Some(per_stall),
        ..jitter
    };
    assert_eq!(transactions(&demands(0.1, 0.1), again(1.0)), (Place::Path, Cause::Loss));
    assert_eq!(transactions(&demands(0.1, 0.1), again(0.1)), (Place::Path, Cause::Stalls));
}

#[test]
fn requests_that_fill_a_path_are_limited_by_its_rate() {
    let full = Transactions {
        median_ns: 100e6,
        p90_ns: Some(105e6),
        least_ns: 20e6,
        path_ns: Some(10e6),
        bytes: 100_000,
        ..Default::default()
    };
    let rate = (Place::Path, Cause::PathRate);
    assert_eq!(transactions(&Facts::default(), full), rate);
    // A single byte fills no path, and jitter makes some of them wait longer than others.
    let small = Transactions { bytes: 1, ..full };
    assert_eq!(transactions(&Facts::default(), small).1, Cause::PathDelay);
    let jitter = Transactions { p90_ns: Some(200e6), least_ns: 12e6, ..full };
    assert_eq!(transactions(&Facts::default(), jitter).1, Cause::PathDelay);
    // A schedule that the path can't carry makes them wait longer and longer.
    let missed = Facts { misses_rate: true, ..Facts::default() };
    assert_eq!(transactions(&missed, Transactions { lost_share: 0.9, ..jitter }), rate);
    // One large message takes as long each time, which only the round trip of the path tells.
    let large = Transactions { least_ns: 95e6, p90_ns: None, ..full };
    assert_eq!(transactions(&Facts::default(), large), rate);
}
