//! Times that the server says, beside the client's own.

use proptest::prelude::*;

use super::super::{judge_server_times, uneven_ends};
use super::*;
use crate::report::SharedTime;
use crate::sample::Sample;

/// An upload of 10 MB within 10 s, by the client's clock.
fn upload(from_ns: Option<u64>, to_ns: Option<u64>) -> (Workload, EndReport, EndReport) {
    let own = FlowReport { to_ns: Some(11 * SECOND_NS), ..sender(0, 10_000_000, 100) };
    let theirs = FlowReport { from_ns, to_ns, ..receiver(0, 10_000_000, 100) };
    let ends = (report(Role::Client, vec![own]), report(Role::Server, vec![theirs]));
    (tcp(Direction::Up, 1), ends.0, ends.1)
}

#[test]
fn a_servers_time_that_contradicts_the_clients_is_a_reason() {
    let reasons = |from_ns, to_ns| {
        let (workload, client, server) = upload(from_ns, to_ns);
        judge(&workload, Some(&client), Some(&server))
    };
    assert!(reasons(Some(SECOND_NS), Some(11 * SECOND_NS)).is_empty());
    // Late for the first byte, or slow to drain.
    assert!(reasons(Some(2 * SECOND_NS), Some(11 * SECOND_NS)).is_empty());
    assert!(reasons(Some(SECOND_NS), Some(60 * SECOND_NS)).is_empty());
    let tenth = reasons(Some(SECOND_NS), Some(2 * SECOND_NS));
    assert_one_reason(
        &tenth,
        &["within 1.000 s by the server's", "within 10.000 s by the client's"],
    );
    let no_time = reasons(Some(SECOND_NS), Some(SECOND_NS + 1));
    assert_one_reason(&no_time, &["0.000000001 s"]);
    for (from_ns, to_ns) in [(None, None), (Some(5), Some(5)), (Some(9), Some(5)), (None, Some(5))]
    {
        assert_one_reason(&reasons(from_ns, to_ns), &["10000000 bytes", "no time"]);
    }
    let (workload, _, server) = upload(Some(SECOND_NS), Some(101 * SECOND_NS));
    let long = judge_server_times(&workload, &server, 12 * SECOND_NS);
    assert_one_reason(&long, &["received for 100.000 s", "took 12.000 s"]);
    assert!(judge_server_times(&workload, &server, 100 * SECOND_NS).is_empty());
    let (workload, _, mut server) = sound();
    server.flows[0].to_ns = Some(100 * SECOND_NS);
    let long = judge_server_times(&workload, &server, 12 * SECOND_NS);
    assert_one_reason(&long, &["sent for 99.000 s"]);
}

/// A short load may have come whole before the client's own began.
#[test]
fn a_client_that_received_everything_at_once_needs_no_time() {
    let (workload, mut client, server) = sound();
    (client.flows[0].from_ns, client.flows[0].to_ns) = (None, None);
    assert!(judge(&workload, Some(&client), Some(&server)).is_empty());
}

/// A path that was dark for most of a load by count: what arrived, arrived in the rest.
#[test]
fn lost_datagrams_need_no_measured_time() {
    let (mut workload, client, mut server) = upload(Some(SECOND_NS), Some(3 * SECOND_NS));
    workload.transport = Transport::Udp;
    server.flows[0].received = Some(Traffic { bytes: 2_000_000, calls: Some(100) });
    assert!(judge(&workload, Some(&client), Some(&server)).is_empty());
    server.flows[0].to_ns = Some(SECOND_NS + SECOND_NS / 10);
    assert_eq!(judge(&workload, Some(&client), Some(&server)).len(), 1);
}

proptest! {
    /// Whatever a server says of its time, the goodput of a run that is trusted is at most a
    /// ninth above the rate at which the client sent, but for a quarter of a second.
    #[test]
    fn no_trusted_upload_is_faster_than_it_was_sent(
        sent in 1..u32::MAX,
        share in 0.0..=1.0_f64,
        sent_ns in 1..100 * SECOND_NS,
        from_ns: u32,
        span_ns in 0..200 * SECOND_NS,
    ) {
        let received = (f64::from(sent) * share) as u64;
        let own = FlowReport { to_ns: Some(SECOND_NS + sent_ns), ..sender(0, sent.into(), 1) };
        let from_ns = u64::from(from_ns);
        let to_ns = Some(from_ns + span_ns);
        let theirs = FlowReport { from_ns: Some(from_ns), to_ns, ..receiver(0, received, 1) };
        let workload = Workload::stream(Direction::Up, Transport::Udp);
        let (client, server) = (report(Role::Client, vec![own]), report(Role::Server, vec![theirs]));
        if judge(&workload, Some(&client), Some(&server)).is_empty() {
            let summary = summarize(&workload, Some(&client), Some(&server));
            let least_s = summary.received_bytes.unwrap() as f64 * 8.0 / summary.goodput_bps.unwrap();
            let sent_s = sent_ns as f64 / 1e9 * received as f64 / f64::from(sent);
            prop_assert!(sent_s * 0.9 <= least_s + 0.2501, "{sent_s} {least_s}");
        }
    }
}

/// Four flows of 12 MB in 12 s, the last of which ended 4 s after the others, and what all shared by the server's word.
fn uneven(shared_time: Option<SharedTime>) -> (Workload, EndReport, EndReport) {
    let sent = |flow| FlowReport { to_ns: Some(11 * SECOND_NS), ..sender(flow, 3_000_000, 100) };
    let received = |flow| {
        let to_ns = if flow == 3 { 15 } else { 11 } * SECOND_NS;
        FlowReport { to_ns: Some(to_ns), ..receiver(flow, 3_000_000, 100) }
    };
    let client = report(Role::Client, (0..4).map(sent).collect());
    let server = report(Role::Server, (0..4).map(received).collect());
    let workload =
        Workload { end: End::Time { duration_ns: 10 * SECOND_NS }, ..tcp(Direction::Up, 4) };
    (workload, client, EndReport { shared_time, ..server })
}

fn shared(from_s: u64, to_s: u64, bytes: u64) -> Option<SharedTime> {
    Some(SharedTime { from_ns: from_s * SECOND_NS, to_ns: to_s * SECOND_NS, bytes })
}

#[test]
fn a_total_has_bytes_and_time_of_what_all_flows_shared() {
    let (workload, client, server) = uneven(shared(1, 11, 11_000_000));
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!(summary.goodput_bps, Some(8_800_000.0));
    assert_eq!((summary.elapsed_s, summary.received_bytes), (Some(10.0), Some(12_000_000)));
    assert_eq!(summary.drained_bytes, Some(1_000_000));
    assert!(uneven_ends(&workload, Some(&client), Some(&server)).is_empty());
    // How long all bytes took is the time of a load by bytes.
    let by_bytes = Workload { end: End::Bytes { bytes: 12_000_000 }, ..workload };
    let summary = summarize(&by_bytes, Some(&client), Some(&server));
    assert_eq!((summary.goodput_bps, summary.elapsed_s), (Some(8_800_000.0), Some(14.0)));
}

#[test]
fn a_total_over_the_slowest_flow_is_told_and_a_peers_shared_time_is_checked() {
    let impossible = [
        None,
        // Outside of the flows' time, empty, more than arrived, in no time, and faster than it was sent.
        shared(0, 11, 11_000_000),
        shared(1, 16, 11_000_000),
        shared(1, 11, 0),
        shared(1, 11, 12_000_001),
        shared(5, 5, 11_000_000),
        shared(1, 3, 11_000_000),
    ];
    for shared_time in impossible {
        let (workload, client, server) = uneven(shared_time);
        let summary = summarize(&workload, Some(&client), Some(&server));
        assert_eq!(summary.elapsed_s, Some(14.0), "{shared_time:?}");
        assert_eq!(summary.drained_bytes, None);
        let told = uneven_ends(&workload, Some(&client), Some(&server));
        assert_eq!(told.len(), 1, "{shared_time:?}");
        assert_eq!((told[0].flows, told[0].apart_ns), (4, 4 * SECOND_NS));
    }
}

#[test]
fn a_pause_in_the_drain_is_no_silence_and_one_in_the_loads_time_is() {
    let sample = |(second, bytes): (u64, &u64)| Sample {
        from_ns: second * SECOND_NS,
        to_ns: (second + 1) * SECOND_NS,
        received: Some(Traffic { bytes: *bytes, calls: None }),
        ..Sample::nothing(Role::Server)
    };
    let (workload, client, server) = uneven(shared(1, 11, 11_000_000));
    let silences = |bytes: &[u64], server: &EndReport| {
        let samples: Vec<Sample> = (1..).zip(bytes).map(sample).collect();
        let all = unmet(&workload, Some(&client), Some(server), &samples, false);
        all.iter().filter(|one| one.what == Quantity::ArrivingS).count()
    };
    let drain = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1];
    assert_eq!(silences(&drain, &server), 0);
    let in_time = [1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1];
    assert_eq!(silences(&in_time, &server), 1);
    // A peer that says it was over early hides nothing.
    let early = EndReport { shared_time: shared(1, 4, 3_000_000), ..server.clone() };
    assert_eq!(silences(&in_time, &early), 1);
}
