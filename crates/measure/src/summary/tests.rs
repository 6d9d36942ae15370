use proptest::prelude::*;

use super::*;
use crate::histogram::Histogram;
use crate::plan::{Arrivals, Direction, End, Kind, Schedule, Transport, Workload};
use crate::report::{EndReport, FlowReport, HostFacts, Verification};
use crate::sample::{CpuSeconds, Role, TcpStatus, Traffic};

const SECOND_NS: u64 = 1_000_000_000;

fn report(role: Role, flows: Vec<FlowReport>) -> EndReport {
    EndReport {
        role,
        flows,
        elapsed_ns: 2 * SECOND_NS,
        cpu: Some(CpuSeconds { user_s: 0.25, system_s: 0.75 }),
        ..EndReport::nothing(role)
    }
}

/// A flow that moved `bytes` in `calls` between 1 s and 3 s.
fn sender(flow: u32, bytes: u64, calls: u64) -> FlowReport {
    let sent = Some(Traffic { bytes, calls: Some(calls) });
    FlowReport {
        flow,
        sent,
        from_ns: Some(SECOND_NS),
        to_ns: Some(3 * SECOND_NS),
        ..Default::default()
    }
}

fn receiver(flow: u32, bytes: u64, calls: u64) -> FlowReport {
    FlowReport {
        sent: None,
        received: Some(Traffic { bytes, calls: Some(calls) }),
        ..sender(flow, 0, 0)
    }
}

fn tcp(direction: Direction, flows: u32) -> Workload {
    Workload { flows, ..Workload::stream(direction, Transport::Tcp) }
}

#[test]
fn a_stream_up() {
    let retransmitted =
        |segments| Some(TcpStatus { retransmitted_segments: segments, ..TcpStatus::default() });
    let client = report(
        Role::Client,
        vec![
            FlowReport { tcp: retransmitted(3), ..sender(0, 1_000_000, 10) },
            FlowReport { tcp: retransmitted(4), ..sender(1, 3_000_000, 10) },
        ],
    );
    let late = FlowReport { to_ns: Some(5 * SECOND_NS), ..receiver(1, 3_000_000, 60) };
    let server = report(Role::Server, vec![receiver(0, 1_000_000, 40), late]);
    let workload = tcp(Direction::Up, 2);
    let summary = summarize(&workload, Some(&client), Some(&server));
    // 4 MB from 1 s to 5 s at the receiver, to 3 s at the sender.
    assert_eq!(summary.goodput_bps, Some(8_000_000.0));
    assert_eq!(summary.sent_bps, Some(16_000_000.0));
    assert_eq!(summary.elapsed_s, Some(4.0));
    assert_eq!((summary.sent_bytes, summary.received_bytes), (Some(4_000_000), Some(4_000_000)));
    assert_eq!(summary.bytes_per_send, Some(200_000.0));
    assert_eq!(summary.bytes_per_receive, Some(40_000.0));
    assert_eq!(summary.retransmitted_segments, Some(7));
    // (1 + 3)^2 / (2 * (1 + 9)).
    assert!((summary.fairness.unwrap() - 0.8).abs() < 1e-12);
    // 2 CPU seconds for 4 MB.
    assert_eq!(summary.cpu_s_per_gb, Some(500.0));
    assert_eq!(
        (summary.goodput_up_bps, summary.datagrams, summary.transactions),
        (None, None, None)
    );
    assert_eq!((summary.verified_bytes, summary.latency_ns), (None, None));
    assert_eq!(judge(&workload, Some(&client), Some(&server)), Vec::<String>::new());
}

#[test]
fn both_directions_add_up_as_rates() {
    let client = report(Role::Client, vec![sender(0, 500, 1), receiver(1, 2_000, 2)]);
    let slow = FlowReport { to_ns: Some(5 * SECOND_NS), ..receiver(0, 500, 1) };
    let server = report(Role::Server, vec![slow, sender(1, 2_000, 2)]);
    let workload = tcp(Direction::Both, 1);
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!(summary.goodput_up_bps, Some(1_000.0));
    assert_eq!(summary.goodput_down_bps, Some(8_000.0));
    assert_eq!(summary.goodput_bps, Some(9_000.0));
    assert_eq!(summary.received_bytes, Some(2_500));
    let alone = summarize(&workload, Some(&client), None);
    assert_eq!((alone.goodput_down_bps, alone.goodput_bps), (Some(8_000.0), None));
    assert_eq!((alone.received_bytes, alone.sent_bytes, alone.cpu_s_per_gb), (None, None, None));
    assert!(alone.cpu_s.is_some_and(|ends| ends.client.is_some() && ends.server.is_none()));
}

#[test]
fn datagrams_of_both_ends() {
    let counts = |sent, refused| DatagramCounts { sent, refused, ..DatagramCounts::default() };
    let client = report(
        Role::Client,
        vec![FlowReport {
            datagrams: Some(counts(Some(1_000), Some(7))),
            ..sender(0, 1_000_000, 9)
        }],
    );
    let arrived = DatagramCounts {
        received: Some(980),
        lost: Some(3),
        duplicated: Some(2),
        reordered: Some(1),
        late: Some(0),
        dropped_by_socket: Some(5),
        ..DatagramCounts::default()
    };
    let flow =
        FlowReport { datagrams: Some(arrived), jitter_ns: Some(1500.0), ..receiver(0, 980_000, 9) };
    let server = report(Role::Server, vec![flow]);
    let workload = Workload::stream(Direction::Up, Transport::Udp);
    let summary = summarize(&workload, Some(&client), Some(&server));
    let expected =
        DatagramCounts { sent: Some(1_000), refused: Some(7), lost: Some(20), ..arrived };
    assert_eq!(summary.datagrams, Some(expected));
    assert_eq!(summary.datagrams_per_s, Some(490.0));
    assert_eq!(summary.loss_ratio, Some(0.02));
    assert_eq!(summary.jitter_ns, Some(1500.0));
    // Without the sender the receiver's own loss stands.
    let alone = summarize(&workload, None, Some(&server));
    assert_eq!(alone.datagrams.and_then(|counts| counts.lost), Some(3));
    assert_eq!(alone.loss_ratio, Some(3.0 / 983.0));
}

fn rr_client(transactions: u64, recorded: u64) -> EndReport {
    let mut histogram = Histogram::new();
    (0..recorded).for_each(|_| histogram.record_ns(20_000));
    let flow = FlowReport {
        transactions: Some(transactions),
        transactions_lost: Some(2),
        ..sender(0, transactions, transactions)
    };
    EndReport { latency_hdr: Some(histogram.to_base64()), ..report(Role::Client, vec![flow]) }
}

fn rr_server() -> EndReport {
    report(Role::Server, vec![receiver(0, 100, 100)])
}

#[test]
fn transactions_are_the_clients() {
    let (client, server) = (rr_client(100, 100), rr_server());
    let workload = Workload::rr(Transport::Tcp);
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!((summary.transactions, summary.transactions_lost), (Some(100), Some(2)));
    assert_eq!((summary.transactions_per_s, summary.elapsed_s), (Some(50.0), Some(2.0)));
    assert_eq!(summary.cpu_s_per_transaction, Some(0.02));
    assert_eq!(summary.latency_from, Some(LatencyFrom::ClosedLoop));
    let latency = summary.latency_ns.unwrap();
    assert!(latency.p90.is_some() && latency.p99.is_none());
    assert_eq!(judge(&workload, Some(&client), Some(&server)), Vec::<String>::new());
}

fn histogram_of(count: u64, each_ns: u64) -> Option<String> {
    let mut histogram = Histogram::new();
    (0..count).for_each(|_| histogram.record_ns(each_ns));
    Some(histogram.to_base64())
}

/// Half of what was due every millisecond for 2 s left: the rest is data, not a reason.
#[test]
fn a_schedule_counts_from_when_requests_were_due() {
    let mut client = rr_client(1_000, 1_000);
    client.service_hdr = histogram_of(1_000, 5_000);
    client.flows[0].transactions_unsent = Some(998);
    let mut workload = Workload::rr(Transport::Udp);
    if let Kind::Rr { schedule, .. } = &mut workload.kind {
        *schedule = Some(Schedule { per_s: 1_000.0, arrivals: Arrivals::Poisson });
    }
    let server = rr_server();
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!(summary.latency_from, Some(LatencyFrom::OpenLoop));
    assert_eq!(summary.transactions_per_s, Some(500.0));
    assert_eq!((summary.transactions_lost, summary.transactions_unsent), (Some(2), Some(998)));
    let (latency, service) = (summary.latency_ns.unwrap(), summary.service_ns.unwrap());
    assert_eq!((latency.count, service.count), (1_000, 1_000));
    assert!(latency.min > 19_000 && service.max < 6_000);
    assert_eq!((summary.establishment_ns, summary.connections_per_s), (None, None));
    assert_eq!(judge(&workload, Some(&client), Some(&server)), Vec::<String>::new());
    // Without a schedule there is nothing that could be due.
    let closed =
        summarize(&Workload::rr(Transport::Udp), Some(&rr_client(1_000, 1_000)), Some(&server));
    assert_eq!(closed.latency_from, Some(LatencyFrom::ClosedLoop));
    assert_eq!((closed.service_ns, closed.transactions_unsent), (None, None));
}

#[test]
fn connections_have_their_parts_told_apart() {
    let mut client = rr_client(1_000, 1_000);
    client.flows[0].transactions_lost = None;
    client.establishment_hdr = histogram_of(1_000, 7_000);
    client.first_byte_hdr = histogram_of(1_000, 14_000);
    client.errors = [("timed_out".to_owned(), 24)].into();
    // As it sees the same failures, in the warm-up too.
    let mut server = report(Role::Server, Vec::new());
    server.errors = [("reset".to_owned(), 30)].into();
    let mut workload = Workload::connect(Transport::Tcp);
    workload.end = End::Count { count: 1_024 };
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!((summary.connections_per_s, summary.transactions_per_s), (Some(500.0), None));
    assert_eq!(summary.transactions, Some(1_000));
    let parts = [summary.establishment_ns, summary.first_byte_ns, summary.latency_ns];
    let [established, first_byte, closed] = parts.map(|part| part.unwrap().mean);
    assert!(established < first_byte && first_byte < closed, "{parts:?}");
    assert_eq!((summary.service_ns, summary.latency_from), (None, Some(LatencyFrom::ClosedLoop)));
    assert_eq!(summary.errors, [("timed_out".to_owned(), 24)].into());
    // Those that failed under load were made too, and a server of such has no flows.
    assert_eq!(judge(&workload, Some(&client), Some(&server)), Vec::<String>::new());
    client.errors.clear();
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["1024 transactions were asked for", "1000 were made"]);
}

/// Asserts that exactly one reason is given and has all of `words`.
fn assert_one_reason(reasons: &[String], words: &[&str]) {
    let [reason] = reasons else {
        panic!("one reason expected: {reasons:?}");
    };
    for word in words {
        assert!(reason.contains(word), "{word:?} isn't in {reason:?}");
    }
}

#[test]
fn latencies_that_do_not_fit() {
    let workload = Workload::rr(Transport::Tcp);
    let server = rr_server();
    let judge = |client: &EndReport| judge(&workload, Some(client), Some(&server));
    assert_one_reason(&judge(&rr_client(100, 99)), &["99 latencies", "100 transactions"]);
    let missing = EndReport { latency_hdr: None, ..rr_client(100, 0) };
    assert_one_reason(&judge(&missing), &["no latencies", "100 transactions"]);
    let garbled = EndReport { latency_hdr: Some("?".into()), ..rr_client(100, 0) };
    assert_one_reason(&judge(&garbled), &["can't be read"]);
    assert_one_reason(&judge(&rr_client(0, 0)), &["no transaction", "2 were lost"]);
}

/// A sound TCP stream of one flow down, to spoil.
fn sound() -> (Workload, EndReport, EndReport) {
    let client = report(Role::Client, vec![receiver(0, 1_000, 1)]);
    let server = report(Role::Server, vec![sender(0, 1_000, 1)]);
    (tcp(Direction::Down, 1), client, server)
}

#[test]
fn missing_or_strange_reports() {
    let (workload, client, server) = sound();
    assert_one_reason(&judge(&workload, Some(&client), None), &["server's report is missing"]);
    assert_eq!(judge(&workload, None, None).len(), 2);
    assert_eq!(summarize(&workload, None, None), Summary::default());
    let other = EndReport { role: Role::Client, ..server.clone() };
    assert_one_reason(&judge(&workload, Some(&client), Some(&other)), &["it is the client's"]);
    let more = EndReport { flows: vec![sender(0, 1_000, 1), sender(1, 1, 1)], ..server };
    assert_one_reason(&judge(&workload, Some(&client), Some(&more)), &["2 flows", "the 1 of"]);
}

#[test]
fn bytes_that_do_not_fit() {
    let (mut workload, mut client, mut server) = sound();
    client.flows[0].received = Some(Traffic { bytes: 1_001, calls: Some(1) });
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["1001 bytes arrived from the server", "1000 were sent"]);
    workload.omit_ns = 1;
    assert!(judge(&workload, Some(&client), Some(&server)).is_empty());
    workload.omit_ns = 0;
    workload.end = End::Bytes { bytes: 2_000 };
    server.flows[0].sent = Some(Traffic { bytes: 2_000, calls: Some(1) });
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["2000 bytes were asked", "1001 arrived"]);
    client.flows[0].received = Some(Traffic::default());
    workload.end = End::Time { duration_ns: SECOND_NS };
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["nothing arrived from the server on any of 1 flows"]);
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!(summary.goodput_bps, Some(0.0));
}

#[test]
fn datagrams_and_sends_that_were_asked_for_and_not_sent() {
    let mut workload = Workload {
        end: End::Bytes { bytes: 2_000 },
        ..Workload::stream(Direction::Up, Transport::Udp)
    };
    let mut client = report(Role::Client, vec![sender(0, 1_500, 1)]);
    let server = report(Role::Server, vec![receiver(0, 1_000, 1)]);
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["2000 bytes were asked for from the client", "1500 were sent"]);
    // Lost on the path, or dropped by the sender's own queue: all was tried.
    client.flows[0].datagrams =
        Some(DatagramCounts { sent: Some(1), refused: Some(1), ..DatagramCounts::default() });
    assert!(judge(&workload, Some(&client), Some(&server)).is_empty());
    client.flows[0] = sender(0, 2_000, 2);
    assert!(judge(&workload, Some(&client), Some(&server)).is_empty());
    for transport in [Transport::Tcp, Transport::Udp] {
        workload = Workload::stream(Direction::Up, transport);
        let Kind::Stream { send_bytes, .. } = workload.kind else { unreachable!() };
        workload.end = End::Count { count: 2 };
        let bytes = u64::from(send_bytes);
        let judged = |sent_bytes| {
            let client = report(Role::Client, vec![sender(0, sent_bytes, 2)]);
            let server = report(Role::Server, vec![receiver(0, sent_bytes, 2)]);
            judge(&workload, Some(&client), Some(&server))
        };
        assert_one_reason(&judged(bytes), &[&format!("{} bytes were asked for", 2 * bytes)]);
        assert!(judged(2 * bytes).is_empty());
    }
}

#[test]
fn wrong_and_unchecked_bytes() {
    let (mut workload, mut client, server) = sound();
    workload.payload.verify = true;
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["verification was asked", "1 of 1 flows"]);
    client.flows[0].verification = Some(Verification {
        verified_bytes: 990,
        wrong_bytes: 10,
        first_wrong_offset: Some(400),
        first_wrong_extent_bytes: Some(6),
        ..Default::default()
    });
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["10 received bytes", "6 bytes at offset 400 of flow 0"]);
    let summary = summarize(&workload, Some(&client), Some(&server));
    assert_eq!((summary.verified_bytes, summary.wrong_bytes), (Some(990), Some(10)));
}

#[test]
fn flows_that_died_and_failures_by_kind() {
    let (workload, mut client, mut server) = sound();
    client.flows[0].error = Some("reset\u{1b}[2J".into());
    client.errors = [("reset".to_owned(), 2)].into();
    server.errors = [("reset".to_owned(), u64::MAX), ("timed_out".to_owned(), 1)].into();
    let reasons = judge(&workload, Some(&client), Some(&server));
    assert_one_reason(&reasons, &["1 of 1 flows ended before their time at the client", "reset"]);
    assert!(!reasons[0].contains('\u{1b}'));
    let errors = summarize(&workload, Some(&client), Some(&server)).errors;
    assert_eq!(errors, [("reset".to_owned(), u64::MAX), ("timed_out".to_owned(), 1)].into());
}

#[test]
fn fairness_by_amount_compares_the_time_that_flows_took() {
    let mut workload = tcp(Direction::Up, 2);
    workload.end = End::Bytes { bytes: 2_000 };
    let slow = FlowReport { to_ns: Some(5 * SECOND_NS), ..receiver(1, 1_000, 1) };
    let server = report(Role::Server, vec![receiver(0, 1_000, 1), slow]);
    let fairness = summarize(&workload, None, Some(&server)).fairness.unwrap();
    // Rates 2 : 1.
    assert!((fairness - 0.9).abs() < 1e-12, "{fairness}");
}

prop_compose! {
    fn any_flow()(
        flow in 0..4_u32,
        traffic: [Option<(u64, u64)>; 2],
        times: [Option<u64>; 2],
        counts: [Option<u64>; 4],
    ) -> FlowReport {
        let [sent, received] =
            traffic.map(|pair| pair.map(|(bytes, calls)| Traffic { bytes, calls: Some(calls) }));
        let [transactions, transactions_lost, datagrams_sent, datagrams_received] = counts;
        let datagrams = datagrams_sent.map(|sent| DatagramCounts {
            sent: Some(sent),
            received: datagrams_received,
            ..DatagramCounts::default()
        });
        let [from_ns, to_ns] = times;
        let verification = Some(Verification { wrong_bytes: flow.into(), ..Default::default() });
        FlowReport {
            flow, sent, received, from_ns, to_ns, transactions, transactions_lost, datagrams,
            verification, ..FlowReport::default()
        }
    }
}

proptest! {
    #[test]
    fn no_reports_panic_and_every_rate_is_finite(
        ours in proptest::collection::vec(any_flow(), 0..6),
        theirs in proptest::collection::vec(any_flow(), 0..6),
        direction in prop_oneof![Just(Direction::Up), Just(Direction::Down), Just(Direction::Both)],
        transport in prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)],
        rr: bool,
    ) {
        let mut workload = Workload::stream(direction, transport);
        if rr {
            workload = Workload::rr(transport);
            prop_assert!(matches!(workload.kind, Kind::Rr { .. }), "the other kind");
        }
        let (client, server) = (report(Role::Client, ours), report(Role::Server, theirs));
        let summary = summarize(&workload, Some(&client), Some(&server));
        let figures = [
            summary.goodput_bps, summary.sent_bps, summary.transactions_per_s, summary.fairness,
            summary.loss_ratio, summary.datagrams_per_s, summary.cpu_s_per_gb,
        ];
        prop_assert!(figures.into_iter().flatten().all(|figure| figure.is_finite() && figure >= 0.0));
        let text = serde_json::to_string(&summary).unwrap();
        prop_assert_eq!(serde_json::from_str::<Summary>(&text).unwrap().sent_bytes, summary.sent_bytes);
        let _ = judge(&workload, Some(&client), Some(&server));
    }
}

mod asked;
mod dialects;
mod machine;
mod times;
