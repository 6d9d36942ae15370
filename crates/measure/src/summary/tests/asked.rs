//! What was asked for and not got.

use super::super::{Quantity, Unmet, unmet};
use super::*;
use crate::plan::Rate;
use crate::report::SocketFacts;
use crate::sample::Sample;

/// 2 s of a stream up at 8 Mbit/s, of which so many bytes were sent and received.
fn paced(transport: Transport, sent: u64, received: u64) -> (Workload, EndReport, EndReport) {
    let client = report(Role::Client, vec![sender(0, sent, 100)]);
    let server = report(Role::Server, vec![receiver(0, received, 100)]);
    let workload = Workload {
        end: End::Time { duration_ns: 2 * SECOND_NS },
        rate: Some(Rate::AllFlows { bps: 8_000_000 }),
        ..Workload::stream(Direction::Up, transport)
    };
    (workload, client, server)
}

fn all_of((workload, client, server): &(Workload, EndReport, EndReport)) -> Vec<Unmet> {
    unmet(workload, Some(client), Some(server), &[], false)
}

#[track_caller]
fn assert_one(all: &[Unmet], what: Quantity, asked: f64, got: f64) -> String {
    let [one] = all else { panic!("one expected: {all:?}") };
    assert_eq!((one.what, one.asked, one.got), (what, asked, got));
    one.note()
}

#[test]
fn a_rate_that_was_missed_is_told_with_both_figures() {
    for transport in [Transport::Tcp, Transport::Tls, Transport::Udp, Transport::Quic] {
        assert!(all_of(&paced(transport, 2_000_000, 2_000_000)).is_empty());
        assert!(all_of(&paced(transport, 1_970_000, 1_970_000)).is_empty());
        let all = all_of(&paced(transport, 1_500_000, 1_500_000));
        let note = assert_one(&all, Quantity::RateBps, 8e6, 6e6);
        assert!(note.contains("6.00 Mbit/s") && note.contains("8.00 Mbit/s"), "{note}");
        let all = all_of(&paced(transport, 3_000_000, 3_000_000));
        assert_one(&all, Quantity::RateBps, 8e6, 12e6);
        let (mut workload, client, server) = paced(transport, 2_000_000, 2_000_000);
        workload.rate = Some(Rate::EachFlow { bps: 16_000_000 });
        assert_one(&all_of(&(workload, client, server)), Quantity::RateBps, 16e6, 8e6);
    }
    // What a buffer took isn't what arrived; what a path of datagrams lost was sent.
    let all = all_of(&paced(Transport::Tcp, 2_000_000, 1_000_000));
    assert_one(&all, Quantity::RateBps, 8e6, 4e6);
    assert!(all_of(&paced(Transport::Udp, 2_000_000, 1_000_000)).is_empty());
}

#[test]
fn a_schedule_that_was_missed_and_requests_never_begun_are_told() {
    let mut workload = Workload::rr(Transport::Tcp);
    workload.end = End::Time { duration_ns: 2 * SECOND_NS };
    let of = |arrivals, done, unsent| {
        let mut workload = workload.clone();
        if let Kind::Rr { schedule, .. } = &mut workload.kind {
            *schedule = Some(Schedule { per_s: 1_000.0, arrivals });
        }
        let mut client = rr_client(done, done);
        client.flows[0].transactions_unsent = unsent;
        unmet(&workload, Some(&client), None, &[], false)
    };
    assert!(of(Arrivals::Even, 1_990, None).is_empty());
    assert_one(&of(Arrivals::Even, 1_000, None), Quantity::TransactionsPerS, 1_000.0, 500.0);
    // So many fewer are chance, where departures are.
    assert!(of(Arrivals::Poisson, 1_800, None).is_empty());
    assert_eq!(of(Arrivals::Even, 1_800, None).len(), 1);
    let all = of(Arrivals::Even, 1_990, Some(8));
    let note = assert_one(&all, Quantity::Transactions, 2_000.0, 1_992.0);
    assert!(note.contains("8 of 2000"), "{note}");
}

#[test]
fn a_measured_time_that_differs_is_told() {
    let (mut workload, client, server) = paced(Transport::Tcp, 2_000_000, 2_000_000);
    workload.rate = None;
    workload.end = End::Time { duration_ns: 2_100_000_000 };
    let reports = (workload, client, server);
    let note = assert_one(&all_of(&reports), Quantity::TimeS, 2.1, 2.0);
    assert!(note.contains("2.00 s") && note.contains("2.10 s"), "{note}");
    let (workload, client, server) = &reports;
    assert!(unmet(workload, Some(client), Some(server), &[], true).is_empty());
    // 50 ms of a short run are more than 2 %, and no news.
    let mut workload = workload.clone();
    workload.end = End::Time { duration_ns: 2_045_000_000 };
    assert!(unmet(&workload, Some(client), Some(server), &[], false).is_empty());
}

#[test]
fn buffers_that_were_not_granted_and_fragments_are_told() {
    let (mut workload, mut client, server) = paced(Transport::Udp, 2_000_000, 2_000_000);
    let socket = SocketFacts {
        peer: Some("192.0.2.1:5250".to_owned()),
        send_buffer_bytes: Some(16 << 20),
        receive_buffer_bytes: Some(512 << 20),
        path_mtu_bytes: Some(1500),
        ..SocketFacts::default()
    };
    client.flows[0].socket = Some(socket.clone());
    workload.socket.window_bytes = Some(256 << 20);
    let all = all_of(&(workload.clone(), client.clone(), server.clone()));
    let note =
        assert_one(&all, Quantity::SendBufferBytes, f64::from(256 << 20), f64::from(8 << 20));
    assert!(note.contains("client's kernel"), "{note}");
    workload.socket.window_bytes = None;
    let sizes =
        [(1472, true, "192.0.2.1:1"), (1473, false, "192.0.2.1:1"), (1453, false, "[::1]:1")];
    for (bytes, fits, peer) in sizes {
        workload.kind = Kind::Stream { direction: Direction::Up, send_bytes: bytes, media: None };
        client.flows[0].socket =
            Some(SocketFacts { peer: Some(peer.to_owned()), ..socket.clone() });
        let all = all_of(&(workload.clone(), client.clone(), server.clone()));
        assert_eq!(all.is_empty(), fits, "{bytes}: {all:?}");
        assert!(
            fits || all[0].what == Quantity::UnfragmentedBytes && all[0].note().contains("MTU")
        );
    }
}

/// The kernel reports the least MTU for a route whose link is down: nothing was fragmented.
#[test]
fn the_mtu_of_a_link_that_is_down_says_nothing() {
    let (workload, mut client, server) = paced(Transport::Udp, 2_000_000, 2_000_000);
    for peer in ["192.0.2.1:5250", "[2001:db8::1]:5250"] {
        client.flows[0].socket = Some(SocketFacts {
            peer: Some(peer.to_owned()),
            path_mtu_bytes: Some(68),
            ..SocketFacts::default()
        });
        assert!(all_of(&(workload.clone(), client.clone(), server.clone())).is_empty());
    }
}

/// A sample of the server's for each second, in which so many bytes arrived.
fn samples(bytes: &[u64]) -> Vec<Sample> {
    let one = |(index, bytes): (u32, &u64)| {
        let from_ns = u64::from(index) * SECOND_NS;
        let text = serde_json::json!({
            "schema": Sample::SCHEMA, "role": "server", "index": index, "from_ns": from_ns,
            "to_ns": from_ns + SECOND_NS, "utc_ns": 0,
            "received": { "bytes": bytes, "calls": bytes },
        });
        serde_json::from_value(text).unwrap()
    };
    (0..).zip(bytes).map(one).collect()
}

#[test]
fn a_path_that_was_dark_for_a_while_is_told() {
    let (workload, client, server) = paced(Transport::Udp, 2_000_000, 2_000_000);
    let of = |bytes: &[u64]| unmet(&workload, Some(&client), Some(&server), &samples(bytes), false);
    assert!(of(&[1, 1, 1]).is_empty() && of(&[0, 0, 0]).is_empty());
    let all = of(&[1, 0, 0, 1, 1]);
    let note = assert_one(&all, Quantity::ArrivingS, 5.0, 3.0);
    assert!(note.contains("2.00 s of 5.00 s"), "{note}");
}

proptest! {
    #[test]
    fn no_reports_panic_and_every_note_has_its_figures(
        ours in proptest::collection::vec(any_flow(), 0..4),
        theirs in proptest::collection::vec(any_flow(), 0..4),
        transport in prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)],
        bps in 1..=u64::MAX,
        duration_ns in 1..=u64::MAX,
        interrupted: bool,
    ) {
        let workload = Workload {
            end: End::Time { duration_ns },
            rate: Some(Rate::EachFlow { bps }),
            ..Workload::stream(Direction::Both, transport)
        };
        let (client, server) = (report(Role::Client, ours), report(Role::Server, theirs));
        for one in unmet(&workload, Some(&client), Some(&server), &[], interrupted) {
            prop_assert!(one.asked.is_finite() && one.got.is_finite() && one.got >= 0.0);
            prop_assert!(one.asked != one.got && !one.note().is_empty());
        }
    }
}

#[test]
fn packets_too_long_for_the_path_are_named_where_no_handshake_was_answered() {
    let workload = |transport, mtu_bytes| {
        let mut workload = Workload::connect(transport);
        workload.quic.mtu_bytes = mtu_bytes;
        workload
    };
    let reasons = |workload: &Workload, kind: &str| {
        let mut client = rr_client(0, 0);
        client.errors = [(kind.to_owned(), 3)].into();
        judge(workload, Some(&client), Some(&rr_server())).join("; ")
    };
    let long = reasons(&workload(Transport::Quic, Some(9_000)), "timed_out");
    assert!(long.contains("packets of 9000 bytes") && long.contains("--mtu"), "{long}");
    // Every path carries 1,200 bytes, and a refusal is an answer.
    let none = [
        reasons(&workload(Transport::Quic, None), "timed_out"),
        reasons(&workload(Transport::Quic, Some(1_200)), "timed_out"),
        reasons(&workload(Transport::Quic, Some(9_000)), "refused"),
    ];
    assert!(none.iter().all(|reasons| !reasons.contains("--mtu")), "{none:?}");
}
