use linerate_measure::{Arrivals, Payload, Schedule, Threading, Transport};

use super::*;

fn admission(max_tests: u32) -> Admission {
    Admission::new(Limits {
        max_tests,
        max_rate_bps: None,
        max_time_ns: None,
        max_descriptors: 20_000,
        processors: 2,
        spinning_threads: None,
    })
}

fn threading(threads: Option<u32>) -> Threading {
    Threading { threads, ..Threading::default() }
}

fn workload() -> Workload {
    Workload::stream(Direction::Up, Transport::Tcp)
}

#[test]
fn as_many_run_as_the_limit_says() {
    let mut admission = admission(2);
    assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
    assert_eq!(admission.handle_request(2, &workload(), false), Verdict::Admitted);
    let third = admission.handle_request(3, &workload(), false);
    assert!(matches!(third, Verdict::Refused(RefusalCause::Busy, why) if why.contains("2 tests")));
    assert_eq!(admission.handle_departure(1), None);
    assert_eq!(admission.handle_request(3, &workload(), false), Verdict::Admitted);
}

#[test]
fn no_more_wait_than_the_limit_says() {
    let mut admission = admission(2);
    assert_eq!(admission.handle_request(0, &workload(), false), Verdict::Admitted);
    for client in 1..=MOST_WAITING {
        let verdict = admission.handle_request(client, &workload(), true);
        assert!(matches!(verdict, Verdict::Queued(_)));
    }
    let next = admission.handle_request(MOST_WAITING + 1, &workload(), true);
    assert!(matches!(next, Verdict::Refused(RefusalCause::Busy, _)));
    assert_eq!(admission.handle_departure(MOST_WAITING), None);
    let next = admission.handle_request(MOST_WAITING + 1, &workload(), true);
    assert_eq!(next, Verdict::Queued(64));
}

#[test]
fn an_exclusive_client_waits_its_turn_and_runs_alone() {
    let mut admission = admission(8);
    assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
    assert_eq!(admission.handle_request(2, &workload(), true), Verdict::Queued(1));
    assert_eq!(admission.handle_request(3, &workload(), true), Verdict::Queued(2));
    assert!(matches!(admission.handle_request(4, &workload(), false), Verdict::Refused(..)));
    assert_eq!(admission.handle_departure(1), Some(2));
    assert_eq!(admission.waiting().collect::<Vec<_>>(), [3]);
    assert!(matches!(admission.handle_request(4, &workload(), false), Verdict::Refused(..)));
    assert_eq!(admission.handle_departure(2), Some(3));
    assert_eq!(admission.handle_departure(3), None);
    assert_eq!(admission.handle_request(4, &workload(), false), Verdict::Admitted);
}

#[test]
fn a_client_that_gives_up_waiting_leaves_the_queue() {
    let mut admission = admission(8);
    assert_eq!(admission.handle_request(1, &workload(), false), Verdict::Admitted);
    assert_eq!(admission.handle_request(2, &workload(), true), Verdict::Queued(1));
    assert_eq!(admission.handle_departure(2), None);
    assert_eq!(admission.handle_request(3, &workload(), false), Verdict::Admitted);
}

#[test]
fn flows_apart_take_nothing_of_the_shared_table() {
    let mut admission = admission(8);
    let flows = |flows| Workload { flows, ..workload() };
    assert_eq!(admission.handle_request(1, &flows(900_000), false), Verdict::Admitted);
    assert_eq!(admission.handle_request(2, &flows(10_000), false), Verdict::Admitted);
    assert_eq!(admission.handle_request(3, &flows(9_000), false), Verdict::Admitted);
    for (more, why) in [(1_000, "open files"), (100_001, "at most 1000000")] {
        let refused = admission.handle_request(4, &flows(more), false);
        assert!(
            matches!(&refused, Verdict::Refused(RefusalCause::Busy, text) if text.contains(why))
        );
    }
    assert_eq!(admission.handle_departure(1), None);
    assert_eq!(admission.handle_request(4, &flows(100_001), false), Verdict::Admitted);
}

#[test]
fn two_flows_that_share_a_connection_take_one_open_file_and_one_thread() {
    let duplex = |flows| Workload {
        flows,
        payload: Payload { duplex: true, ..Payload::default() },
        ..Workload::stream(Direction::Both, Transport::Tcp)
    };
    for (flows, fits) in [(6_000, 3), (4_000, 4)] {
        let mut admission = admission(8);
        for client in 0..fits {
            assert_eq!(admission.handle_request(client, &duplex(flows), false), Verdict::Admitted);
            assert_eq!(admission.running[client].flows, u64::from(flows));
            assert_eq!(admission.running[client].flows_apart, 0);
        }
        let refused = admission.handle_request(fits, &duplex(flows), false);
        assert!(
            matches!(&refused, Verdict::Refused(RefusalCause::Busy, why) if why.contains("open files")),
            "{refused:?}"
        );
    }
    let mut admission = admission(8);
    let one = Workload { threading: threading(Some(8)), ..duplex(1) };
    assert_eq!(admission.handle_request(1, &one, false), Verdict::Admitted);
    assert_eq!(admission.running[0].threads, 1);
}

#[test]
fn a_load_over_quic_takes_an_open_file_for_each_thread_that_its_client_may_have() {
    let quic = |flows, threads| Workload {
        flows,
        threading: threading(threads),
        ..Workload::stream(Direction::Up, Transport::Quic)
    };
    let mut admission = admission(100);
    for client in 0..9 {
        let verdict = admission.handle_request(client, &quic(100_000, Some(64)), false);
        assert_eq!(verdict, Verdict::Admitted);
    }
    let taken: u64 = admission.running.iter().map(|need| need.flows).sum();
    assert_eq!((taken, admission.running[0].flows_apart), (9 * 64, 100_000));
    // However few sockets they share, no more flows than there may be.
    let mut admission = Admission::new(admission.limits);
    for client in 0..10 {
        let verdict = admission.handle_request(client, &quic(100_000, Some(1)), false);
        assert_eq!(verdict, Verdict::Admitted);
    }
    let refused = admission.handle_request(10, &quic(1, Some(1)), false);
    assert!(
        matches!(&refused, Verdict::Refused(_, why) if why.contains("1000000 flows of other tests")),
        "{refused:?}"
    );
    // Where it doesn't say how many it has, for as many as there may be.
    let max_descriptors = 4_096;
    let mut low = Admission::new(Limits { max_descriptors, ..admission.limits });
    for client in 0..3 {
        assert_eq!(low.handle_request(client, &quic(100_000, None), false), Verdict::Admitted);
        assert_eq!((low.running[client].flows, low.running[client].flows_apart), (1_024, 100_000));
    }
    let refused = low.handle_request(3, &quic(100_000, None), false);
    assert!(
        matches!(&refused, Verdict::Refused(_, why) if why.contains("open files")),
        "{refused:?}"
    );
    assert_eq!(low.handle_request(3, &quic(100_000, Some(2)), false), Verdict::Admitted);
    assert_eq!(low.handle_request(4, &quic(3, None), false), Verdict::Admitted);
}

#[test]
fn threads_are_shared_by_all_tests() {
    let mut admission = admission(8);
    admission.limits.processors = 500;
    let threads =
        |threads| Workload { flows: 1024, threading: threading(Some(threads)), ..workload() };
    assert_eq!(admission.handle_request(1, &threads(1000), false), Verdict::Admitted);
    let refused = admission.handle_request(2, &threads(25), false);
    assert!(matches!(refused, Verdict::Refused(_, why) if why.contains("--threads")));
    assert_eq!(admission.handle_request(2, &threads(24), false), Verdict::Admitted);
}

#[test]
fn connections_that_come_and_go_take_open_files_for_two_each() {
    let connect = |flows| Workload { flows, ..Workload::connect(Transport::Tcp) };
    let mut admission = admission(8);
    assert_eq!(admission.handle_request(1, &connect(9_000), false), Verdict::Admitted);
    assert_eq!(admission.most_coming_and_going(&connect(9_000)), 18_064);
    let refused = admission.handle_request(2, &connect(1_000), false);
    assert!(matches!(refused, Verdict::Refused(RefusalCause::Busy, _)), "{refused:?}");
    assert_eq!(admission.handle_request(2, &connect(600), false), Verdict::Admitted);
    let max_descriptors = 1_000;
    let mut low = Admission::new(Limits { max_descriptors, ..admission.limits });
    let refused = low.handle_request(1, &connect(432), false);
    assert!(
        matches!(&refused, Verdict::Refused(RefusalCause::Limit, why) if why.contains("432")),
        "{refused:?}"
    );
    assert_eq!(low.handle_request(1, &connect(430), false), Verdict::Admitted);
    assert_eq!(low.most_coming_and_going(&connect(430)), 500);
}

#[test]
fn limits_are_named() {
    let mut admission = Admission::new(Limits {
        max_tests: 4,
        max_rate_bps: Some(1_000_000_000),
        max_time_ns: Some(5_000_000_000),
        max_descriptors: 1_000,
        processors: 2,
        spinning_threads: None,
    });
    let refusal = |admission: &mut Admission, workload: &Workload| match admission
        .handle_request(1, workload, false)
    {
        Verdict::Refused(_, why) => why,
        other => panic!("{other:?}"),
    };
    assert!(refusal(&mut admission, &workload()).contains("--time"));
    let short = Workload { end: End::Time { duration_ns: 1_000_000_000 }, ..workload() };
    assert!(refusal(&mut admission, &short).contains("--rate"));
    let flows = 500_001;
    let both = Kind::Stream { direction: Direction::Both, send_bytes: 1, media: None };
    let many = Workload { flows, kind: both, ..short.clone() };
    assert!(refusal(&mut admission, &many).contains("--flows"));
    let paced = Workload { rate: Some(Rate::AllFlows { bps: 600_000_000 }), ..short };
    assert_eq!(admission.handle_request(1, &paced, false), Verdict::Admitted);
    assert!(refusal(&mut admission, &paced).contains("taken"));
}

/// `rr` or `connect` of so many bytes each way, so many times a second.
fn transactions(rr: bool, [request, response]: [u32; 2], per_second: Option<f64>) -> Workload {
    let mut workload =
        if rr { Workload::rr(Transport::Tcp) } else { Workload::connect(Transport::Tcp) };
    workload.flows = 8;
    match &mut workload.kind {
        Kind::Rr { request_bytes, response_bytes, schedule, .. }
        | Kind::Connect { request_bytes, response_bytes, schedule, .. } => {
            (*request_bytes, *response_bytes) = (request, response);
            *schedule = per_second.map(|per_s| Schedule { per_s, arrivals: Arrivals::Poisson });
        }
        Kind::Stream { .. } => unreachable!("requests and responses"),
    }
    workload
}

#[test]
fn requests_and_responses_count_as_what_they_carry_each_second() {
    for rr in [true, false] {
        let mut limited =
            Admission::new(Limits { max_rate_bps: Some(10_000_000), ..admission(8).limits });
        let mut ask =
            |sizes, per_s| limited.handle_request(1, &transactions(rr, sizes, per_s), false);
        let refused = |verdict, words: &[&str]| {
            let Verdict::Refused(RefusalCause::Limit, why) = verdict else {
                panic!("{verdict:?}");
            };
            for word in words {
                assert!(why.contains(word), "no {word:?} in: {why}");
            }
        };
        refused(ask([1, 16 << 20], None), &["10.0 Mbit/s", "--rate, up to 0.074 "]);
        refused(ask([1, 1], None), &["10.0 Mbit/s", "--rate, up to 625000 "]);
        refused(ask([500, 750], Some(1_000.1)), &["10.0 Mbit/s is more", "--rate, up to 1000 "]);
        refused(ask([1, 1], Some(1e9)), &["16.0 Gbit/s", "10.0 Mbit/s"]);
        // Both directions, as of a stream.
        assert_eq!(ask([400, 600], Some(1_000.0)), Verdict::Admitted);
        let rest = limited.handle_request(2, &transactions(rr, [125, 125], Some(1_001.0)), false);
        assert!(
            matches!(&rest, Verdict::Refused(RefusalCause::Busy, why) if why.contains("taken"))
        );
        let rest = limited.handle_request(2, &transactions(rr, [125, 125], Some(1_000.0)), false);
        assert_eq!(rest, Verdict::Admitted);
        // What is named is allowed, though its binary fraction is a little more than that.
        let mut limited =
            Admission::new(Limits { max_rate_bps: Some(7_000_000), ..limited.limits });
        let named =
            limited.handle_request(1, &transactions(rr, [1, 12_499_999], Some(0.07)), false);
        assert_eq!(named, Verdict::Admitted);
        let mut low = Admission::new(Limits { max_rate_bps: Some(1_000), ..limited.limits });
        let largest = low.handle_request(1, &transactions(rr, [16 << 20; 2], None), false);
        refused(largest, &["1.00 kbit/s", "smaller requests"]);
    }
}

#[test]
fn no_test_has_more_threads_than_its_share() {
    let with =
        |threads| Workload { threading: threading(Some(threads)), flows: 1024, ..workload() };
    let mut shared = admission(64);
    let verdict = shared.handle_request(1, &with(65), false);
    assert!(matches!(verdict, Verdict::Refused(RefusalCause::Limit, why) if why.contains("(64)")));
    for client in 0..16 {
        assert_eq!(shared.handle_request(client, &with(64), false), Verdict::Admitted);
    }
    // A server of one test at a time leaves it all there is; more processors make larger shares.
    assert_eq!(admission(1).handle_request(1, &with(1024), false), Verdict::Admitted);
    let mut large = Admission::new(Limits { processors: 48, ..shared.limits });
    assert_eq!(large.handle_request(1, &with(96), false), Verdict::Admitted);
}

#[test]
fn threads_poll_without_sleeping_where_the_server_allows_it_and_never_on_all_processors() {
    let with = |threads| {
        let threading = Threading { threads: Some(threads), busy_poll: true };
        Workload { threading, flows: 8, ..workload() }
    };
    let mut never = admission(8);
    assert_eq!(never.handle_request(1, &with(1), false), Verdict::Admitted);
    assert!(never.handle_busy_poll(1).is_err_and(|why| why.contains("serve --busy-poll")));
    let limits = Limits { processors: 4, spinning_threads: Some(3), ..never.limits };
    let mut allowed = Admission::new(limits);
    for (client, threads, granted) in [(1, 2, true), (2, 2, false), (3, 1, true), (4, 1, false)] {
        assert_eq!(allowed.handle_request(client, &with(threads), false), Verdict::Admitted);
        assert_eq!(allowed.handle_busy_poll(client).is_ok(), granted, "client {client}");
    }
    assert_eq!(allowed.handle_departure(1), None);
    assert_eq!(allowed.handle_busy_poll(4), Ok(()));
}

/// A client with a lease, at a server for so many tests.
fn with_lease(max_tests: u32, exclusive: bool) -> Admission {
    let mut admission = admission(max_tests);
    assert_eq!(admission.handle_request(1, &workload(), exclusive), Verdict::Admitted);
    admission.hold(1, [1; 16]);
    admission
}

#[test]
fn the_tests_of_a_lease_take_one_place_between_tests_too() {
    let mut admission = with_lease(2, false);
    for member in [2, 3] {
        assert_eq!(admission.handle_request_within(1, member, &workload()), Verdict::Admitted);
    }
    assert_eq!(admission.handle_request(4, &workload(), false), Verdict::Admitted);
    let refused = admission.handle_request(5, &workload(), false);
    assert!(
        matches!(refused, Verdict::Refused(RefusalCause::Busy, why) if why.contains("2 tests"))
    );
    for over in [1, 2, 3] {
        assert_eq!(admission.handle_departure(over), None);
    }
    // Between two tests of the lease the place is kept, and the holder begins the next without a question.
    assert!(matches!(admission.handle_request(5, &workload(), false), Verdict::Refused(..)));
    assert_eq!(admission.handle_request_within(1, 1, &workload()), Verdict::Admitted);
    assert_eq!(admission.handle_departure(1), None);
    admission.release(1);
    assert_eq!(admission.handle_request(5, &workload(), false), Verdict::Admitted);
}

#[test]
fn a_lease_has_no_more_tests_at_once_than_a_few() {
    let mut admission = with_lease(1, false);
    for member in 2..=MOST_TESTS_OF_A_LEASE {
        assert_eq!(admission.handle_request_within(1, member, &workload()), Verdict::Admitted);
    }
    let refused = admission.handle_request_within(1, 100, &workload());
    assert!(
        matches!(refused, Verdict::Refused(RefusalCause::Busy, why) if why.contains("8 tests"))
    );
    assert_eq!(admission.handle_departure(2), None);
    assert_eq!(admission.handle_request_within(1, 100, &workload()), Verdict::Admitted);
}

#[test]
fn tests_that_outlive_a_lease_take_its_place_until_they_end() {
    let mut admission = with_lease(1, false);
    assert_eq!(admission.handle_request_within(1, 2, &workload()), Verdict::Admitted);
    admission.release(1);
    assert_eq!(admission.handle_departure(1), None);
    assert!(matches!(admission.handle_request(3, &workload(), false), Verdict::Refused(..)));
    assert_eq!(admission.handle_departure(2), None);
    assert_eq!(admission.handle_request(3, &workload(), false), Verdict::Admitted);
}

#[test]
fn clients_that_wait_to_be_alone_wait_for_the_end_of_a_lease() {
    let mut admission = with_lease(8, false);
    assert_eq!(admission.handle_request(2, &workload(), true), Verdict::Queued(1));
    assert_eq!(admission.handle_departure(1), None, "between two tests of the lease");
    assert_eq!(admission.handle_request_within(1, 1, &workload()), Verdict::Admitted);
    assert_eq!(admission.handle_departure(1), None);
    admission.release(1);
    assert_eq!(admission.handle_departure(1), Some(2));
}

#[test]
fn a_lease_that_is_alone_stays_alone_between_tests() {
    let mut admission = with_lease(8, true);
    assert_eq!(admission.handle_request_within(1, 2, &workload()), Verdict::Admitted);
    assert!(admission.is_alone(1) && admission.is_alone(2));
    for over in [1, 2] {
        assert_eq!(admission.handle_departure(over), None);
    }
    let refused = admission.handle_request(3, &workload(), false);
    assert!(matches!(refused, Verdict::Refused(RefusalCause::Busy, why) if why.contains("alone")));
    assert_eq!(admission.handle_request(4, &workload(), true), Verdict::Queued(1));
    admission.release(1);
    assert_eq!(admission.handle_departure(1), Some(4));
}

#[test]
fn limits_hold_within_a_lease() {
    let mut admission =
        Admission::new(Limits { max_rate_bps: Some(10_000), ..admission(1).limits });
    let paced = |bps| Workload { rate: Some(Rate::AllFlows { bps }), ..workload() };
    assert_eq!(admission.handle_request(1, &paced(6_000), false), Verdict::Admitted);
    admission.hold(1, [1; 16]);
    let refused = admission.handle_request_within(1, 2, &workload());
    assert!(
        matches!(refused, Verdict::Refused(RefusalCause::Limit, why) if why.contains("--rate"))
    );
    let refused = admission.handle_request_within(1, 2, &paced(5_000));
    assert!(matches!(refused, Verdict::Refused(RefusalCause::Busy, why) if why.contains("taken")));
    assert_eq!(admission.handle_request_within(1, 2, &paced(4_000)), Verdict::Admitted);
}
