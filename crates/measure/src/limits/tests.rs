mod loss;
mod paths;
mod quic;
mod requests;

use proptest::prelude::*;

use super::rules::{
    DatagramShares, Facts, QuicFacts, Transactions, datagrams, is_clear, quic, tcp, transactions,
};
use super::*;
use crate::histogram::Histogram;
use crate::one_way::{Transit, Transits};
use crate::plan::{End, Rate, Transport, Workload};
use crate::report::{
    Disturbance, EndReport, FlowReport, OwnQueue, SocketFacts, SocketQueues, Standstills,
    ThreadDemand,
};
use crate::run::{Draft, Outcome, Run};
use crate::sample::{
    DatagramCounts, FlowSample, QuicStatus, QuicWaits, Role, Sample, TcpStatus, Traffic,
};
use crate::{Kind, Plan};

const SECOND_NS: u64 = 1_000_000_000;

/// What was measured of transfers over TCP whose limit was known, from the least to the greatest: busy, held by the
/// receive window and by the send buffer, bytes unsent and unread, demand of sender and receiver, sent again, and how
/// much longer the round trips were than the least.
struct Fixture {
    told: (Place, Cause),
    busy: (f64, f64),
    rwnd: (f64, f64),
    sndbuf: (f64, f64),
    notsent: (u64, u64),
    unread: (u64, u64),
    sender: (f64, f64),
    receiver: (f64, f64),
    lost: (f64, f64),
    longer: (f64, f64),
    trend: Option<(f64, f64)>,
    keeps_rate: bool,
}

const PLAIN: Fixture = Fixture {
    told: (Place::Path, Cause::Path),
    busy: (0.98, 1.0),
    rwnd: (0.0, 0.0),
    sndbuf: (0.0, 0.0),
    notsent: (81_000, 4_000_000),
    unread: (0, 0),
    sender: (0.0, 0.3),
    receiver: (0.0, 0.3),
    lost: (0.0, 0.0),
    longer: (0.0, 0.06),
    trend: None,
    keeps_rate: false,
};

const FIXTURES: [Fixture; 11] = [
    Fixture {
        told: (Place::ReceiveWindow, Cause::ReceiveWindow),
        rwnd: (0.35, 0.86),
        notsent: (160_000, 4_000_000),
        sender: (0.0, 0.06),
        receiver: (0.0, 0.15),
        lost: (0.0, 0.0015),
        ..PLAIN
    },
    Fixture {
        told: (Place::SendBuffer, Cause::SendBuffer),
        sndbuf: (0.39, 0.85),
        notsent: (0, 13_000),
        sender: (0.0, 0.09),
        lost: (0.0, 0.0004),
        longer: (0.0, 0.09),
        ..PLAIN
    },
    Fixture {
        told: (Place::Path, Cause::Loss),
        busy: (0.86, 1.0),
        rwnd: (0.0, 0.01),
        notsent: (51_000, 4_000_000),
        sender: (0.0, 0.59),
        receiver: (0.0, 0.54),
        lost: (0.0019, 0.026),
        longer: (0.01, 0.24),
        ..PLAIN
    },
    Fixture {
        told: (Place::Path, Cause::PathRate),
        busy: (0.86, 1.0),
        rwnd: (0.0, 0.02),
        unread: (0, 25_000),
        sender: (0.0, 0.41),
        receiver: (0.0, 0.56),
        lost: (0.0001, 0.042),
        longer: (0.35, 1400.0),
        ..PLAIN
    },
    Fixture {
        told: (Place::Path, Cause::StartUp),
        busy: (0.91, 0.94),
        rwnd: (0.0, 0.10),
        notsent: (355_000, 4_000_000),
        sender: (0.0, 0.16),
        receiver: (0.0, 0.18),
        longer: (0.0, 0.03),
        trend: Some((11.7, 27.6)),
        ..PLAIN
    },
    Fixture {
        told: (Place::Sender, Cause::OwnPacing),
        busy: (0.03, 0.48),
        rwnd: (0.0, 0.16),
        notsent: (0, 0),
        sender: (0.0, 0.5),
        lost: (0.0, 0.0002),
        keeps_rate: true,
        ..PLAIN
    },
    Fixture {
        told: (Place::Sender, Cause::SenderIdle),
        busy: (0.18, 0.30),
        notsent: (0, 0),
        unread: (0, 130_000),
        sender: (0.0, 0.40),
        receiver: (0.0, 0.36),
        ..PLAIN
    },
    Fixture {
        told: (Place::Sender, Cause::LocalCpu),
        busy: (0.04, 0.14),
        rwnd: (0.0, 0.06),
        notsent: (0, 0),
        sender: (0.77, 0.99),
        receiver: (0.0, 0.17),
        ..PLAIN
    },
    Fixture {
        told: (Place::Receiver, Cause::RemoteCpu),
        busy: (0.82, 0.99),
        rwnd: (0.0, 0.54),
        sndbuf: (0.0, 0.05),
        unread: (1_200_000, 6_000_000),
        sender: (0.0, 0.39),
        receiver: (0.60, 1.0),
        ..PLAIN
    },
    Fixture {
        told: (Place::Receiver, Cause::ReceiverIdle),
        busy: (0.82, 1.0),
        rwnd: (0.0, 0.68),
        unread: (214_000, 6_000_000),
        sender: (0.0, 0.57),
        receiver: (0.0, 0.31),
        ..PLAIN
    },
    PLAIN,
];

/// A fixture at these places between its least and greatest figures, each from 0 to 1.
fn between(fixture: &Fixture, places: &[f64; 9]) -> Facts {
    let real = |(low, high): (f64, f64), place: usize| low + (high - low) * places[place];
    let whole =
        |(low, high): (u64, u64), place: usize| real((low as f64, high as f64), place) as u64;
    let min_rtt_us = 20_000;
    Facts {
        evidence: LimitEvidence {
            busy_ratio: Some(real(fixture.busy, 0)),
            rwnd_limited_ratio: Some(real(fixture.rwnd, 1)),
            sndbuf_limited_ratio: Some(real(fixture.sndbuf, 2)),
            notsent_bytes: Some(whole(fixture.notsent, 3)),
            receive_queue_bytes: Some(whole(fixture.unread, 4)),
            rtt_us: Some((f64::from(min_rtt_us) * (1.0 + real(fixture.longer, 5))) as u32),
            min_rtt_us: Some(min_rtt_us),
            lost_ratio: Some(real(fixture.lost, 6)),
            demand_sender: Some(real(fixture.sender, 7)),
            demand_receiver: Some(real(fixture.receiver, 8)),
            ..LimitEvidence::default()
        },
        keeps_rate: fixture.keeps_rate,
        trend: fixture.trend.map(|trend| real(trend, 0)),
        ..Facts::default()
    }
}

proptest! {
    #[test]
    fn transfers_over_tcp_with_a_known_limit_are_told_right(
        number in 0..FIXTURES.len(),
        places in proptest::array::uniform9(0.0..1.0_f64),
    ) {
        let fixture = &FIXTURES[number];
        let facts = between(fixture, &places);
        prop_assert_eq!(tcp(&facts), fixture.told, "{:?}", facts);
    }

    /// Whatever a peer tells, finding a limit comes to an end.
    #[test]
    fn any_figures_have_a_limit(
        times in proptest::array::uniform6(proptest::num::u64::ANY),
        shares in proptest::array::uniform4(proptest::num::f64::ANY),
        transport in prop_oneof![
            Just(Transport::Tcp), Just(Transport::Udp), Just(Transport::Quic)
        ],
    ) {
        let mut draft = transfer(transport, 4);
        let client = draft.client.as_mut().unwrap();
        client.elapsed_ns = times[0];
        let flow = &mut client.flows[0];
        (flow.from_ns, flow.to_ns) = (Some(times[1]), Some(times[2]));
        flow.sent = Some(Traffic { bytes: times[3], calls: None });
        flow.datagrams =
            Some(DatagramCounts { sent: Some(times[4]), refused: Some(times[5]), ..Default::default() });
        flow.tcp = Some(TcpStatus {
            busy_us: Some(times[4]),
            rwnd_limited_us: Some(times[5]),
            min_rtt_us: Some(times[0] as u32),
            rtt_us: times[2] as u32,
            mss_bytes: times[5] as u32,
            retransmitted_segments: times[1] as u32,
            ..TcpStatus::default()
        });
        flow.quic = Some(QuicStatus {
            in_flight_bytes: Some(times[4]),
            cwnd_bytes: times[5],
            rtt_us: times[0] as u32,
            sent_packets: times[1],
            congestion_events: times[2],
            ecn_events: Some(times[3]),
            ..QuicStatus::default()
        });
        flow.socket =
            Some(SocketFacts { congestion: Some("cubic".to_owned()), ..SocketFacts::default() });
        let busiest = ThreadDemand { run_s: shares[0], wait_s: shares[1] };
        client.disturbance = Some(Box::new(Disturbance {
            busiest_thread: Some(busiest), ..Disturbance::default()
        }));
        for limit in finished(draft).summary.limits {
            prop_assert!(limit.share.is_none_or(|share| (0.0..=1.0).contains(&share)));
            let text = serde_json::to_string(&limit).unwrap();
            serde_json::from_str::<Limit>(&text).unwrap();
        }
    }
}

#[test]
fn a_path_that_is_shorter_than_a_thread_is_busy_is_no_limit() {
    let mut facts = between(&FIXTURES[3], &[0.5; 9]);
    facts.evidence.demand_receiver = Some(0.8);
    assert_eq!(tcp(&facts), (Place::Path, Cause::PathRate), "a queue of milliseconds stands");
    (facts.evidence.rtt_us, facts.evidence.min_rtt_us) = (Some(60), Some(5));
    facts.evidence.lost_ratio = Some(0.0);
    assert_eq!(tcp(&facts), (Place::Receiver, Cause::RemoteCpu), "loopback");
    facts.evidence.demand_receiver = Some(0.3);
    assert_eq!(tcp(&facts), (Place::Path, Cause::PathRate));
    facts.evidence.lost_ratio = Some(0.01);
    assert_eq!(tcp(&facts), (Place::Path, Cause::Loss));
}

#[test]
fn what_a_receiver_without_a_processor_loses_is_no_loss_of_the_path() {
    let of = |(demand_sender, demand_receiver), receiver_wait_ratio| {
        let facts = between(&PLAIN, &[0.5; 9]);
        let evidence = LimitEvidence {
            lost_ratio: Some(0.008),
            demand_sender: Some(demand_sender),
            demand_receiver: Some(demand_receiver),
            rtt_us: Some(66),
            min_rtt_us: Some(1),
            ..facts.evidence
        };
        tcp(&Facts { evidence, receiver_wait_ratio, sender_wait_ratio: Some(0.8), ..facts })
    };
    assert_eq!(of((0.2, 0.8), Some(0.8)), (Place::Receiver, Cause::RemoteCpu));
    assert_eq!(of((0.2, 0.8), Some(0.1)), (Place::Path, Cause::Loss));
    assert_eq!(of((0.2, 0.8), None), (Place::Path, Cause::Loss));
    // A sender that waits for its processor loses nothing by it.
    assert_eq!(of((0.9, 0.8), Some(0.8)), (Place::Path, Cause::Loss));
}

#[test]
fn a_window_has_not_grown_to_the_paths_within_a_few_round_trips() {
    let within = |round_trips| {
        let facts = between(&PLAIN, &[0.5; 9]);
        tcp(&Facts { round_trips: Some(round_trips), trend: Some(0.9), ..facts })
    };
    assert_eq!(within(7.5), (Place::Path, Cause::StartUp));
    assert_eq!(within(20.0), (Place::Path, Cause::Path));
}

#[test]
fn a_full_queue_of_the_own_device_is_no_path() {
    let facts =
        |ratio| Facts { local_queue_ratio: Some(ratio), ..between(&FIXTURES[3], &[0.5; 9]) };
    for (ratio, is_clear) in [(0.0006, false), (0.001, true)] {
        assert_eq!(tcp(&facts(ratio)), (Place::LocalQueue, Cause::LocalQueue));
        assert_eq!(rules::is_clear(&facts(ratio), Cause::LocalQueue), is_clear, "{ratio}");
    }
    assert_eq!(tcp(&facts(0.0005)), (Place::Path, Cause::PathRate), "others dropped a few");
}

#[test]
fn packets_that_the_own_queue_dropped_are_a_share_of_the_segments_of_all_flows() {
    let cause = |dropped| {
        let mut draft = transfer(Transport::Tcp, 5);
        let client = draft.client.as_mut().unwrap();
        let tcp = TcpStatus { rtt_us: 200_000, rwnd_limited_us: None, ..held_by_window(5) };
        client.flows[0].tcp = Some(tcp);
        client.disturbance = Some(Box::new(Disturbance {
            own_queue: Some(OwnQueue { dropped, overlimits: 0 }),
            ..Disturbance::default()
        }));
        finished(draft).summary.limits[0].cause
    };
    // 62.5 MB are 43,163 segments.
    assert_eq!(
        (cause(1), cause(21), cause(22)),
        (Cause::PathRate, Cause::PathRate, Cause::LocalQueue)
    );
}

#[test]
fn a_thread_that_mostly_waited_is_advised_to_have_a_processor() {
    let advice = |run_s, wait_s| {
        let mut draft = transfer(Transport::Udp, 5);
        let counts =
            |sent, received| Some(DatagramCounts { sent, received, ..DatagramCounts::default() });
        let client = draft.client.as_mut().unwrap();
        client.flows[0].datagrams = counts(Some(1000), None);
        client.disturbance = Some(Box::new(Disturbance {
            busiest_thread: Some(ThreadDemand { run_s, wait_s }),
            ..Disturbance::default()
        }));
        draft.server.as_mut().unwrap().flows[0].datagrams = counts(None, Some(1000));
        let limits = finished(draft).summary.limits;
        assert_eq!(limits[0].cause, Cause::LocalCpu);
        limits[0].advice.clone().unwrap()
    };
    assert_eq!(advice(4.0, 1.0), "a thread took 100 % of a processor: use more flows and threads");
    assert_eq!(
        advice(1.0, 3.0),
        "a thread waited 60 % of the time for a processor that other work used: stop the other \
         programs, or give the load processors of its own"
    );
}

#[test]
fn a_socket_with_a_small_buffer_is_full_early() {
    let mut facts = between(&FIXTURES[10], &[0.5; 9]);
    facts.evidence.receive_queue_bytes = Some(40_000);
    assert_eq!(tcp(&facts).1, Cause::Path);
    facts.receive_buffer_bytes = Some(128 << 10);
    assert_eq!(tcp(&facts), (Place::Receiver, Cause::ReceiverIdle));
}

#[test]
fn what_became_of_datagrams_tells_the_place() {
    let facts = |keeps_rate, demand| Facts {
        evidence: LimitEvidence { demand_sender: Some(demand), ..LimitEvidence::default() },
        keeps_rate,
        misses_rate: !keeps_rate,
        ..Facts::default()
    };
    let shares = |lost, dropped_by_socket, refused| DatagramShares {
        lost,
        dropped_by_socket,
        refused,
        ..DatagramShares::default()
    };
    for (keeps, demand, shares, told) in [
        (true, 0.2, shares(0.0, 0.0, 0.0), (Place::Sender, Cause::OwnPacing)),
        (false, 0.9, shares(0.0, 0.0, 0.0), (Place::Sender, Cause::LocalCpu)),
        (false, 0.2, shares(0.0, 0.0, 0.0), (Place::Sender, Cause::SenderIdle)),
        (false, 0.2, shares(0.0, 0.0, 0.3), (Place::LocalQueue, Cause::LocalQueue)),
        (true, 0.2, shares(0.1, 0.09, 0.0), (Place::Receiver, Cause::ReceiverSocket)),
        (true, 0.2, shares(0.5, 0.0, 0.0), (Place::Path, Cause::PathRate)),
        (true, 0.2, shares(0.01, 0.0, 0.0), (Place::Path, Cause::Loss)),
    ] {
        assert_eq!(datagrams(&facts(keeps, demand), shares), told, "{shares:?}");
    }
    let unasked = Facts { misses_rate: false, ..facts(false, 0.9) };
    assert_eq!(datagrams(&unasked, shares(0.0, 0.0, 0.0)).1, Cause::LocalCpu);
}

#[test]
fn the_window_in_flight_tells_of_quic() {
    let in_flight = |ratio| QuicFacts { in_flight_ratio: Some(ratio), ..QuicFacts::default() };
    let path = between(&FIXTURES[3], &[0.5; 9]);
    assert_eq!(quic(&path, in_flight(0.9)), (Place::Path, Cause::PathRate));
    let loss = between(&FIXTURES[2], &[0.5; 9]);
    assert_eq!(quic(&loss, in_flight(0.8)), (Place::Path, Cause::Loss));
    assert_eq!(quic(&loss, in_flight(0.1)), (Place::Sender, Cause::SenderIdle));
    let busy = between(&FIXTURES[8], &[0.9; 9]);
    assert_eq!(quic(&busy, in_flight(0.8)), (Place::Receiver, Cause::RemoteCpu));
    assert_eq!(quic(&Facts { keeps_rate: true, ..loss }, QuicFacts::default()).1, Cause::OwnPacing);
    let mut long = path;
    long.evidence.lost_ratio = Some(0.0);
    long.trend = Some(3.0);
    assert_eq!(quic(&long, in_flight(0.9)), (Place::Path, Cause::StartUp));
    assert_eq!(quic(&long, in_flight(0.1)), (Place::Sender, Cause::SenderIdle));
    let lost = Facts { trend: Some(3.0), ..loss };
    assert_eq!(quic(&lost, in_flight(0.9)), (Place::Path, Cause::Loss));
}

#[test]
fn what_quic_waited_for_tells_more_than_its_window() {
    let loss = between(&FIXTURES[2], &[0.5; 9]);
    let waits = |window, application| QuicFacts {
        in_flight_ratio: Some(0.1),
        window_ratio: Some(window),
        application_ratio: Some(application),
        ..QuicFacts::default()
    };
    assert_eq!(quic(&loss, waits(0.8, 0.1)), (Place::Path, Cause::Loss));
    assert_eq!(quic(&loss, waits(0.1, 0.8)), (Place::Sender, Cause::SenderIdle));
    // Neither counts beside long waits for a turn: the window in flight does.
    let turns = QuicFacts { in_flight_ratio: Some(0.9), ..waits(0.1, 0.2) };
    assert_eq!(quic(&loss, turns), (Place::Path, Cause::Loss));
    assert_eq!(quic(&loss, waits(0.2, 0.1)), (Place::Sender, Cause::SenderIdle));
    let dropped = QuicFacts { socket_drop_ratio: Some(0.7), ..waits(0.8, 0.1) };
    assert_eq!(quic(&loss, dropped), (Place::Receiver, Cause::ReceiverSocket));
    let asked = QuicFacts { asked_pacing_ratio: Some(0.9), ..dropped };
    assert_eq!(quic(&loss, asked), (Place::Sender, Cause::OwnPacing));
    let few = QuicFacts { socket_drop_ratio: Some(0.1), ..dropped };
    assert_eq!(quic(&loss, few), (Place::Path, Cause::Loss));
    let trains = QuicFacts { drops_trains: true, ..few };
    assert_eq!(quic(&loss, trains), (Place::Receiver, Cause::ReceiverSocket));
    let mut held = loss;
    held.evidence.rwnd_limited_ratio = None;
    held.evidence.flow_control_ratio = Some(0.5);
    assert_eq!(quic(&held, waits(0.4, 0.1)), (Place::ReceiveWindow, Cause::ReceiveWindow));
    assert!(is_clear(&held, Cause::ReceiveWindow));
    let stopped = |ratio| QuicFacts { wakeup_delay_ratio: Some(ratio), ..waits(0.4, 0.1) };
    assert_eq!(quic(&held, stopped(0.5)), (Place::ReceiveWindow, Cause::ReceiveWindow));
    let stopped = stopped(1.1);
    assert_eq!(quic(&held, stopped), (Place::Receiver, Cause::ReceiverIdle));
}

/// A stream up of so many intervals of a second, of which nothing is known but its bytes.
pub(super) fn transfer(transport: Transport, seconds: u32) -> Draft {
    let mut workload = Workload::stream(Direction::Up, transport);
    let time_ns = u64::from(seconds) * SECOND_NS;
    workload.end = End::Time { duration_ns: time_ns };
    let traffic = Some(Traffic { bytes: u64::from(seconds) * 12_500_000, calls: Some(1000) });
    let flow = FlowReport { from_ns: Some(0), to_ns: Some(time_ns), ..FlowReport::default() };
    let end = |role, flow| EndReport {
        elapsed_ns: time_ns,
        flows: vec![flow],
        ..EndReport::nothing(role)
    };
    let mut draft = Draft::new("1".to_owned(), Plan::new("host", 1, workload));
    draft.client = Some(end(Role::Client, FlowReport { sent: traffic, ..flow.clone() }));
    draft.server = Some(end(Role::Server, FlowReport { received: traffic, ..flow }));
    draft
}

pub(super) fn finished(draft: Draft) -> Run {
    draft.into_run(Outcome::Complete, 0, None)
}

/// The kernel's words after so many seconds of a transfer that the receive window holds up for three quarters.
fn held_by_window(second: u64) -> TcpStatus {
    TcpStatus {
        rtt_us: 100_000,
        min_rtt_us: Some(99_000),
        mss_bytes: 1448,
        busy_us: Some(second * 1_000_000),
        rwnd_limited_us: Some(second * 750_000),
        sndbuf_limited_us: Some(0),
        notsent_bytes: Some(400_000),
        ..TcpStatus::default()
    }
}

/// The client's samples of each second, with what its kernel says at the end of it.
fn samples_of(seconds: u32, tcp: impl Fn(u64) -> TcpStatus) -> Vec<Sample> {
    let sample = |index| Sample {
        index,
        from_ns: u64::from(index) * SECOND_NS,
        to_ns: u64::from(index + 1) * SECOND_NS,
        flows: vec![FlowSample {
            sent_bytes: Some(12_500_000),
            tcp: Some(tcp(u64::from(index) + 1)),
            ..FlowSample::default()
        }],
        ..Sample::nothing(Role::Client)
    };
    (0..seconds).map(sample).collect()
}

#[test]
fn a_receive_window_is_found_with_the_window_that_would_do() {
    let mut draft = transfer(Transport::Tcp, 5);
    draft.samples = samples_of(5, |second| match second {
        // In the last second nothing held it up, and round trips were long.
        5 => TcpStatus { rtt_us: 200_000, busy_us: Some(5_000_000), ..held_by_window(4) },
        _ => held_by_window(second),
    });
    let client = draft.client.as_mut().unwrap();
    client.flows[0].tcp = Some(TcpStatus { busy_us: Some(5_000_000), ..held_by_window(4) });
    let queues = |notsent_bytes, receive_queue_bytes| {
        Some(SocketQueues { notsent_bytes, receive_queue_bytes })
    };
    client.flows[0].queues = queues(Some(400_000), None);
    draft.server.as_mut().unwrap().flows[0].queues = queues(None, Some(0));
    let run = finished(draft);
    let [limit] = &run.summary.limits[..] else { panic!("{:?}", run.summary.limits) };
    assert_eq!((limit.place, limit.cause), (Place::ReceiveWindow, Cause::ReceiveWindow));
    assert_eq!((limit.direction, limit.flow, limit.share), (Direction::Up, None, Some(0.8)));
    assert!(limit.sure, "{limit:?}");
    assert_eq!(limit.evidence.rwnd_limited_ratio, Some(0.6));
    // 200 Mbit/s at 100 ms are 2.5 MB.
    let advice = limit.advice.as_deref().unwrap();
    assert_eq!(advice, "a receive window of 2.50 MB carries 200 Mbit/s at 100.00 ms of round trip");
    let words: Vec<Option<Cause>> = run.samples.iter().map(|sample| sample.limit).collect();
    let window = Some(Cause::ReceiveWindow);
    assert_eq!(words, [window, window, window, window, Some(Cause::PathRate)]);
}

#[test]
fn the_most_common_limit_of_several_flows_is_the_directions() {
    let mut draft = transfer(Transport::Tcp, 5);
    draft.plan.workload.flows = 3;
    let client = draft.client.as_mut().unwrap();
    let first = client.flows[0].clone();
    client.flows = (0..3)
        .map(|flow| FlowReport {
            flow,
            tcp: Some(match flow {
                1 => TcpStatus {
                    rtt_us: 200_000,
                    busy_us: Some(5_000_000),
                    rwnd_limited_us: None,
                    ..held_by_window(5)
                },
                _ => held_by_window(5),
            }),
            ..first.clone()
        })
        .collect();
    let limits = finished(draft).summary.limits;
    let causes: Vec<_> = limits.iter().map(|limit| (limit.flow, limit.cause)).collect();
    let (window, rate) = (Cause::ReceiveWindow, Cause::PathRate);
    assert_eq!(causes, [(None, window), (Some(0), window), (Some(1), rate), (Some(2), window)]);
}

/// The times that datagrams took, in ms more than the quickest.
pub(super) fn transit(more_ms: &[u64]) -> Option<Box<Transit>> {
    let mut transits = Transits::default();
    for (number, ms) in more_ms.iter().enumerate() {
        let sent_ns = 1 + number as u64 * 1_000_000;
        transits.record(sent_ns, sent_ns + 1_000_000 + ms * 1_000_000);
    }
    transits.transit().map(Box::new)
}

#[test]
fn a_rate_of_datagrams_that_was_kept_is_the_limit() {
    let mut draft = transfer(Transport::Udp, 5);
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 100_000_000 });
    let counts =
        |sent, received| Some(DatagramCounts { sent, received, ..DatagramCounts::default() });
    draft.client.as_mut().unwrap().flows[0].datagrams = counts(Some(1000), None);
    draft.server.as_mut().unwrap().flows[0].datagrams = counts(None, Some(1000));
    let limits = finished(draft.clone()).summary.limits;
    assert_eq!((limits[0].cause, limits[0].sure), (Cause::OwnPacing, false), "queues aren't told");
    draft.server.as_mut().unwrap().flows[0].transit = transit(&[0; 100]);
    let limits = finished(draft.clone()).summary.limits;
    assert_eq!((limits[0].cause, limits[0].sure), (Cause::OwnPacing, true));
    draft.server.as_mut().unwrap().flows[0].datagrams = counts(None, Some(700));
    let limits = finished(draft).summary.limits;
    assert_eq!((limits[0].place, limits[0].cause), (Place::Path, Cause::PathRate));
}
