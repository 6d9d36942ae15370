use super::*;
use crate::dialect::DialectOptions;
use crate::plan::{Direction, End, Kind, Rate, Transport, Workload};
use crate::report::{
    Disturbance, EndReport, FlowReport, Quota, SocketFacts, Standstills, ThreadDemand, Waiting,
};
use crate::run::{Draft, Outcome, Run};
use crate::sample::{
    CpuSeconds, DatagramCounts, FlowSample, MachineCpu, QuicStatus, Sample, TcpStatus, Traffic,
};
use crate::{Plan, Status};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;

/// A stream of so many seconds up, both ends of which saw nothing wrong.
fn sound(transport: Transport, seconds: u64) -> Draft {
    let mut workload = Workload::stream(Direction::Up, transport);
    workload.end = End::Time { duration_ns: seconds * SECOND_NS };
    let traffic = Some(Traffic { bytes: seconds * 12_500_000, calls: Some(1000) });
    let flow =
        FlowReport { from_ns: Some(0), to_ns: Some(seconds * SECOND_NS), ..FlowReport::default() };
    let sends = FlowReport { sent: traffic, ..flow.clone() };
    let receives = FlowReport { received: traffic, ..flow };
    let end = |role, flow| EndReport {
        elapsed_ns: seconds * SECOND_NS,
        cpu: Some(CpuSeconds { user_s: 0.1, system_s: 0.4 }),
        machine_cpu: vec![MachineCpu {
            user_s: 0.2,
            system_s: 0.4,
            idle_s: seconds as f64 - 0.6,
            ..MachineCpu::default()
        }],
        disturbance: Some(Box::default()),
        flows: vec![flow],
        ..EndReport::nothing(role)
    };
    let mut draft = Draft::new("1".to_owned(), Plan::new("host", 1, workload));
    draft.client = Some(end(Role::Client, sends));
    draft.server = Some(end(Role::Server, receives));
    draft
}

fn disturbance(end: &mut Option<EndReport>) -> &mut Disturbance {
    end.as_mut().unwrap().disturbance.as_mut().unwrap()
}

fn finished(draft: &Draft) -> Run {
    draft.clone().into_run(Outcome::Complete, 0, None)
}

fn status(draft: &Draft) -> Status {
    finished(draft).status
}

/// The one reason of a run.
fn only(draft: &Draft) -> Reason {
    let reasons = status(draft).reasons;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.into_iter().next().unwrap()
}

#[test]
fn a_run_without_reasons_is_valid() {
    let status = status(&sound(Transport::Tcp, 10));
    assert_eq!((status.verdict, status.exit_code), (Some(Trust::Valid), 0));
    assert_eq!(Trust::Valid.line(&status.reasons), "VALID");
}

#[test]
fn a_failed_run_is_invalid_without_reasons() {
    let run = sound(Transport::Tcp, 10).into_run(Outcome::Failed, 1, Some("why".to_owned()));
    assert_eq!(run.status.verdict, Some(Trust::Invalid));
    assert!(run.status.reasons.is_empty());
}

#[test]
fn a_short_run_is_doubtful_at_most_for_what_machines_do() {
    let mut draft = sound(Transport::Tcp, 9);
    let late = Standstills { longest_ns: 900 * MS_NS, at_ns: SECOND_NS, total_ns: 4 * SECOND_NS };
    disturbance(&mut draft.client).lateness = Some(late);
    let reason = only(&draft);
    assert_eq!((reason.code, reason.severity), (ReasonCode::StoodStill, Severity::Doubtful));
    assert_eq!((reason.value, reason.limit), (Some(0.9), Some(0.1)));
    assert_eq!(reason.text, "the client stood still for 900 ms at 1.0 s");
    let told = status(&draft);
    assert_eq!((told.verdict, told.outcome), (Some(Trust::Doubtful), Outcome::Complete));
    assert_eq!((told.exit_code, told.message), (0, None));
}

#[test]
fn the_outcome_of_a_document_without_a_verdict_tells_it() {
    let mut status = status(&sound(Transport::Tcp, 10));
    for (outcome, trust) in [
        (Outcome::Complete, Trust::Valid),
        (Outcome::Interrupted, Trust::Doubtful),
        (Outcome::Untrustworthy, Trust::Invalid),
        (Outcome::Failed, Trust::Invalid),
    ] {
        (status.outcome, status.verdict) = (outcome, None);
        assert_eq!(status.trust(), trust);
    }
    status.verdict = Some(Trust::Doubtful);
    assert_eq!(status.trust(), Trust::Doubtful);
}

#[test]
fn strictness_takes_doubt_for_failure() {
    let mut draft = sound(Transport::Tcp, 2);
    let mut valid = status(&draft);
    valid.be_strict();
    assert_eq!(valid.exit_code, 0);
    disturbance(&mut draft.server).other_tests = Some(1);
    let mut doubtful = status(&draft);
    doubtful.be_strict();
    assert_eq!((doubtful.exit_code, doubtful.outcome), (6, Outcome::Complete));
    doubtful.exit_code = 130;
    doubtful.be_strict();
    assert_eq!(doubtful.exit_code, 130);
}

#[test]
fn standstills_of_a_fifth_of_a_long_run_make_it_invalid() {
    let mut draft = sound(Transport::Tcp, 10);
    let mut late =
        Standstills { longest_ns: 300 * MS_NS, at_ns: SECOND_NS, total_ns: 2 * SECOND_NS };
    disturbance(&mut draft.server).lateness = Some(late);
    assert_eq!(only(&draft).severity, Severity::Doubtful, "exactly a fifth");
    late.total_ns += 1;
    disturbance(&mut draft.server).lateness = Some(late);
    let told = status(&draft);
    assert_eq!((told.verdict, told.outcome), (Some(Trust::Invalid), Outcome::Untrustworthy));
    assert_eq!((told.exit_code, told.reasons[0].end), (6, Some(Role::Server)));
    assert_eq!(told.message.as_deref(), Some("the server stood still for 300 ms at 1.0 s"));
    draft.dialect = crate::Dialect::Iperf3;
    assert_eq!(status(&draft).exit_code, 0, "another dialect keeps its exit code");
    late.longest_ns = 100 * MS_NS;
    disturbance(&mut draft.server).lateness = Some(late);
    assert!(status(&draft).reasons.is_empty(), "100 ms are no standstill");
}

#[test]
fn a_gap_counts_from_300_ms_where_something_was_due() {
    let mut draft = sound(Transport::Tcp, 10);
    let gap = |ms| Standstills { longest_ns: ms * MS_NS, at_ns: SECOND_NS, total_ns: ms * MS_NS };
    disturbance(&mut draft.server).silence = Some(gap(299));
    assert!(status(&draft).reasons.is_empty());
    disturbance(&mut draft.server).silence = Some(gap(600));
    let reason = only(&draft);
    assert_eq!((reason.code, reason.severity), (ReasonCode::Gap, Severity::Doubtful));
    assert_eq!(reason.text, "nothing arrived at the server for 600 ms until 1.0 s");
    disturbance(&mut draft.server).silence = Some(gap(2_100));
    assert_eq!(only(&draft).severity, Severity::Invalid);
    // 10 pieces of 1,150 bytes in 2.1 s are 44 kbit/s.
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 40_000 });
    assert!(!status(&draft).reasons.iter().any(|reason| reason.code == ReasonCode::Gap));
}

#[test]
fn responses_that_were_due_and_did_not_come_are_a_gap() {
    let mut draft = sound(Transport::Tcp, 10);
    draft.plan.workload = Workload { end: draft.plan.workload.end, ..Workload::rr(Transport::Tcp) };
    let mut histogram = crate::histogram::Histogram::new();
    for _ in 0..10 {
        histogram.record_ns(50_000_000);
    }
    let client = draft.client.as_mut().unwrap();
    client.latency_hdr = Some(histogram.to_base64());
    client.flows[0].transactions = Some(10);
    let gap = |ms| Some(Standstills { longest_ns: ms * MS_NS, at_ns: SECOND_NS, total_ns: 0 });
    disturbance(&mut draft.client).silence = gap(450);
    assert!(status(&draft).reasons.is_empty(), "nine mean latencies");
    disturbance(&mut draft.client).silence = gap(600);
    assert_eq!((only(&draft).code, only(&draft).end), (ReasonCode::Gap, Some(Role::Client)));
    draft.client.as_mut().unwrap().flows[0].transactions_lost = Some(1);
    assert!(status(&draft).reasons.is_empty(), "it was waited for");
}

#[test]
fn another_time_than_was_asked_for_is_told() {
    for (seconds, code, severity) in [
        (10.1, None, Severity::Doubtful),
        (10.5, Some(ReasonCode::Stretched), Severity::Doubtful),
        (12.5, Some(ReasonCode::Stretched), Severity::Invalid),
        (9.5, Some(ReasonCode::Shortened), Severity::Doubtful),
        (5.0, Some(ReasonCode::Shortened), Severity::Invalid),
    ] {
        let mut draft = sound(Transport::Udp, 10);
        let flow = &mut draft.server.as_mut().unwrap().flows[0];
        flow.to_ns = Some((seconds * 1e9) as u64);
        let reasons = status(&draft).reasons;
        let told = reasons.first().map(|reason| (reason.code, reason.severity));
        assert_eq!(told, code.map(|code| (code, severity)), "{seconds}");
    }
}

#[test]
fn a_rate_that_the_path_held_back_is_no_reason() {
    // 100 Mbit/s were sent.
    let mut draft = sound(Transport::Tcp, 10);
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 200_000_000 });
    assert!(status(&draft).reasons.is_empty(), "nobody tells what the sender waited for");
    let tcp = |busy_us| Some(TcpStatus { busy_us: Some(busy_us), ..TcpStatus::default() });
    draft.client.as_mut().unwrap().flows[0].tcp = tcp(9_900_000);
    assert!(status(&draft).reasons.is_empty(), "it had unacknowledged data all the time");
    draft.client.as_mut().unwrap().flows[0].tcp = tcp(3_000_000);
    let reason = only(&draft);
    assert_eq!((reason.code, reason.severity), (ReasonCode::RateMissed, Severity::Invalid));
    assert_eq!((reason.value, reason.limit), (Some(1e8), Some(2e8)));
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 105_000_000 });
    assert_eq!(only(&draft).severity, Severity::Doubtful);
    draft.plan.workload.transport = Transport::Udp;
    assert_eq!(only(&draft).code, ReasonCode::RateMissed, "no path holds datagrams back");
}

/// A sample of a second of the client's one flow.
fn second(index: u32, warm_up: bool, flow: FlowSample) -> Sample {
    Sample {
        index,
        warm_up,
        from_ns: u64::from(index) * SECOND_NS,
        to_ns: u64::from(index + 1) * SECOND_NS,
        flows: vec![flow],
        ..Sample::nothing(Role::Client)
    }
}

#[test]
fn a_quic_sender_with_a_full_window_in_its_samples_was_held_back_by_the_path() {
    let quic =
        |in_flight_bytes| QuicStatus { in_flight_bytes, cwnd_bytes: 100, ..QuicStatus::default() };
    let mut draft = sound(Transport::Quic, 10);
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 200_000_000 });
    // At the end everything is acknowledged.
    draft.client.as_mut().unwrap().flows[0].quic = Some(quic(Some(0)));
    assert!(status(&draft).reasons.is_empty(), "no sample tells");
    let samples = |in_flight| -> Vec<Sample> {
        let flow =
            || FlowSample { quic: Some(Box::new(quic(Some(in_flight)))), ..FlowSample::default() };
        (0..10).map(|index| second(index, false, flow())).collect()
    };
    draft.samples = samples(90);
    assert!(status(&draft).reasons.is_empty());
    draft.samples = samples(10);
    assert_eq!(only(&draft).code, ReasonCode::RateMissed);
}

#[test]
fn time_of_the_warm_up_is_no_time_of_a_busy_sender() {
    let tcp = |busy_us| Some(TcpStatus { busy_us: Some(busy_us), ..TcpStatus::default() });
    let mut draft = sound(Transport::Tcp, 10);
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 200_000_000 });
    draft.client.as_mut().unwrap().flows[0].tcp = tcp(10_000_000);
    assert!(status(&draft).reasons.is_empty());
    let flow = |busy_us| FlowSample { tcp: tcp(busy_us), ..FlowSample::default() };
    draft.samples = vec![second(0, true, flow(3_000_000)), second(1, true, flow(5_000_000))];
    assert_eq!(only(&draft).code, ReasonCode::RateMissed);
}

#[test]
fn a_queue_that_drains_after_the_senders_time_stretches_nothing() {
    for transport in [Transport::Tcp, Transport::Tls, Transport::Quic] {
        let mut draft = sound(transport, 10);
        draft.server.as_mut().unwrap().flows[0].to_ns = Some(13 * SECOND_NS);
        let told = status(&draft);
        assert_eq!((told.verdict, told.unmet.len()), (Some(Trust::Valid), 1), "{transport:?}");
        draft.client.as_mut().unwrap().flows[0].to_ns = Some(12 * SECOND_NS);
        let reason = only(&draft);
        assert_eq!((reason.code, reason.severity), (ReasonCode::Stretched, Severity::Invalid));
        assert_eq!(reason.value, Some(12.0), "{transport:?}");
    }
}

#[test]
fn a_run_that_was_cut_short_before_10_s_is_doubtful_at_most() {
    let mut draft = sound(Transport::Tcp, 60);
    let late = Standstills { longest_ns: 900 * MS_NS, at_ns: SECOND_NS, total_ns: 40 * SECOND_NS };
    disturbance(&mut draft.client).lateness = Some(late);
    assert_eq!(only(&draft).severity, Severity::Invalid);
    for end in [&mut draft.client, &mut draft.server] {
        end.as_mut().unwrap().elapsed_ns = 9 * SECOND_NS;
    }
    assert_eq!(only(&draft).severity, Severity::Doubtful);
}

#[test]
fn time_between_units_of_a_slow_stream_or_between_bursts_is_no_gap() {
    let mut draft = sound(Transport::Tls, 10);
    let gap = Standstills { longest_ns: 600 * MS_NS, at_ns: SECOND_NS, total_ns: 600 * MS_NS };
    disturbance(&mut draft.server).silence = Some(gap);
    assert_eq!(only(&draft).code, ReasonCode::Gap);
    draft.options = Some(DialectOptions { has_bursts: true, ..DialectOptions::default() });
    assert!(status(&draft).reasons.is_empty());
    draft.options = None;
    // A record of 16 KiB takes 0.4 s at 320 kbit/s.
    draft.plan.workload.kind =
        Kind::Stream { direction: Direction::Up, send_bytes: 16 << 10, media: None };
    let received = |bytes| Some(Traffic { bytes, calls: Some(1000) });
    draft.client.as_mut().unwrap().flows[0].sent = received(400_000);
    draft.server.as_mut().unwrap().flows[0].received = received(400_000);
    assert!(status(&draft).reasons.is_empty());
}

#[test]
fn a_stream_with_a_rate_sends_small_pieces_so_a_gap_is_told_though_one_send_is_large() {
    let mut draft = sound(Transport::Quic, 10);
    draft.plan.workload.kind =
        Kind::Stream { direction: Direction::Up, send_bytes: 512 << 10, media: None };
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 1_000_000 });
    let gap = Standstills { longest_ns: 600 * MS_NS, at_ns: SECOND_NS, total_ns: 600 * MS_NS };
    disturbance(&mut draft.server).silence = Some(gap);
    let is_gap = |reason: &Reason| reason.code == ReasonCode::Gap;
    assert!(status(&draft).reasons.iter().any(is_gap));
}

#[test]
fn datagrams_that_the_ends_dropped_are_told() {
    for (refused, dropped, rate, severity) in [
        (0, 0, None, None),
        (1, 0, None, None),
        (0, 2, None, Some(Severity::Doubtful)),
        (30, 40, None, Some(Severity::Doubtful)),
        (30, 40, Some(Rate::AllFlows { bps: 100_000_000 }), Some(Severity::Invalid)),
    ] {
        let mut draft = sound(Transport::Udp, 10);
        draft.plan.workload.rate = rate;
        let counts = DatagramCounts {
            sent: Some(1000 - refused),
            refused: Some(refused),
            ..DatagramCounts::default()
        };
        draft.client.as_mut().unwrap().flows[0].datagrams = Some(counts);
        let counts = DatagramCounts {
            received: Some(1000 - refused - dropped),
            dropped_by_socket: Some(dropped),
            ..DatagramCounts::default()
        };
        draft.server.as_mut().unwrap().flows[0].datagrams = Some(counts);
        let reasons = status(&draft).reasons;
        assert_eq!(reasons.first().map(|reason| reason.severity), severity, "{refused} {dropped}");
        assert!(reasons.iter().all(|reason| reason.code == ReasonCode::OwnDrops));
    }
}

#[test]
fn waits_for_a_processor_count_where_others_used_it() {
    let mut draft = sound(Transport::Tcp, 10);
    let busiest = ThreadDemand { run_s: 1.0, wait_s: 3.0 };
    disturbance(&mut draft.client).busiest_thread = Some(busiest);
    assert!(status(&draft).reasons.is_empty(), "nobody else was there");
    draft.client.as_mut().unwrap().machine_cpu[0].user_s = 2.0;
    let reason = only(&draft);
    assert_eq!((reason.code, reason.severity), (ReasonCode::CpuContended, Severity::Doubtful));
    assert_eq!((reason.value, reason.end), (Some(0.3), Some(Role::Client)));
    disturbance(&mut draft.client).busiest_thread = Some(ThreadDemand { wait_s: 2.0, ..busiest });
    assert!(status(&draft).reasons.is_empty(), "a fifth of the time");
    // The thread was read a little before and after the measured time.
    let all = ThreadDemand { run_s: 4.0, wait_s: 12.0 };
    disturbance(&mut draft.client).busiest_thread = Some(all);
    assert_eq!(only(&draft).value, Some(0.75));
    let nothing = draft.client.as_mut().unwrap();
    nothing.elapsed_ns = 0;
    let contended = |reason: &Reason| reason.code == ReasonCode::CpuContended;
    assert!(!status(&draft).reasons.iter().any(contended), "nothing was measured");
}

#[test]
fn a_peer_on_the_same_machine_is_no_other_program() {
    let mut draft = sound(Transport::Tcp, 10);
    for end in [&mut draft.client, &mut draft.server] {
        let end = end.as_mut().unwrap();
        end.host.hostname = "h".to_owned();
        end.cpu = Some(CpuSeconds { user_s: 1.0, system_s: 4.0 });
        end.machine_cpu[0] =
            MachineCpu { user_s: 2.0, system_s: 8.0, idle_s: 0.0, ..end.machine_cpu[0] };
        let busiest_thread = Some(ThreadDemand { run_s: 5.0, wait_s: 5.0 });
        end.disturbance = Some(Box::new(Disturbance { busiest_thread, ..Default::default() }));
    }
    assert!(status(&draft).reasons.is_empty());
}

#[test]
fn waits_are_a_part_of_latencies() {
    let mut draft = sound(Transport::Tcp, 10);
    draft.plan.workload = Workload { end: draft.plan.workload.end, ..Workload::rr(Transport::Tcp) };
    assert!(matches!(draft.plan.workload.kind, Kind::Rr { .. }));
    let mut histogram = crate::histogram::Histogram::new();
    for _ in 0..1000 {
        histogram.record_ns(1_000_000);
    }
    let client = draft.client.as_mut().unwrap();
    client.latency_hdr = Some(histogram.to_base64());
    client.flows[0].transactions = Some(1000);
    client.machine_cpu[0].user_s = 3.0;
    // 1000 times 1 ms.
    disturbance(&mut draft.client).wait_s = Some(0.2);
    assert!(status(&draft).reasons.is_empty());
    disturbance(&mut draft.server).wait_s = Some(0.1);
    let reason = only(&draft);
    assert_eq!(reason.code, ReasonCode::WaitInLatency);
    assert!((reason.value.unwrap() - 0.3).abs() < 0.01, "{reason:?}");
}

#[test]
fn an_end_that_slept_where_polling_was_asked_for_makes_any_load_doubtful() {
    let polls = Waiting { spins: true, ..Waiting::default() };
    let stream = Workload::stream(Direction::Up, Transport::Tcp);
    for kind in [stream.kind, Workload::rr(Transport::Tcp).kind] {
        let mut draft = sound(Transport::Tcp, 10);
        draft.plan.workload = Workload { kind, ..draft.plan.workload.clone() };
        for end in [&mut draft.client, &mut draft.server] {
            end.as_mut().unwrap().waiting = Some(polls);
        }
        draft.plan.workload.threading.busy_poll = true;
        let refused = |draft: &Draft| -> Vec<_> {
            let reasons = status(draft).reasons.into_iter();
            reasons.filter(|it| it.code == ReasonCode::BusyPollRefused).map(|it| it.end).collect()
        };
        assert!(refused(&draft).is_empty());
        draft.server.as_mut().unwrap().waiting = Some(Waiting::default());
        assert_eq!(refused(&draft), [Some(Role::Server)]);
        draft.client.as_mut().unwrap().waiting = Some(Waiting::default());
        assert_eq!(refused(&draft), [Some(Role::Client), Some(Role::Server)]);
        draft.plan.workload.threading.busy_poll = false;
        assert!(refused(&draft).is_empty());
    }
}

#[test]
fn socket_buffers_other_than_asked_for_make_a_run_doubtful() {
    let mut draft = sound(Transport::Tcp, 10);
    draft.plan.workload.socket.window_bytes = Some(4_000_000);
    let sized = |bytes| {
        Some(SocketFacts {
            send_buffer_bytes: bytes,
            receive_buffer_bytes: bytes,
            ..SocketFacts::default()
        })
    };
    for end in [&mut draft.client, &mut draft.server] {
        // The kernel tells twice what it grants.
        end.as_mut().unwrap().flows[0].socket = sized(Some(8_000_000));
    }
    assert!(status(&draft).reasons.is_empty());
    draft.server.as_mut().unwrap().flows[0].socket = sized(Some(425_984));
    let reasons = status(&draft).reasons;
    assert!(!reasons.is_empty());
    for reason in reasons {
        assert_eq!((reason.code, reason.end), (ReasonCode::BufferSize, Some(Role::Server)));
        assert_eq!((reason.value, reason.limit), (Some(212_992.0), Some(4_000_000.0)));
    }
}

#[test]
fn quota_steal_and_other_tests_are_told() {
    let mut draft = sound(Transport::Tcp, 10);
    let quota = Quota { periods: 100, throttled_periods: 50 };
    disturbance(&mut draft.client).quota = Some(quota);
    assert_eq!(only(&draft).code, ReasonCode::CpuQuota);
    disturbance(&mut draft.client).quota = Some(Quota { throttled_periods: 1, ..quota });
    assert!(status(&draft).reasons.is_empty());
    draft.server.as_mut().unwrap().machine_cpu[0].steal_s = 2.0;
    assert_eq!((only(&draft).code, only(&draft).end), (ReasonCode::CpuSteal, Some(Role::Server)));
    draft.server.as_mut().unwrap().machine_cpu[0].steal_s = 0.1;
    disturbance(&mut draft.server).other_tests = Some(2);
    assert_eq!(only(&draft).text, "the server served 2 other tests at the same time");
}

#[test]
fn the_gravest_reason_stands_first_in_the_line() {
    let doubt = |text: &str| Reason {
        severity: Severity::Doubtful,
        ..Reason::contradiction(text.to_owned())
    };
    let reasons = [doubt("a"), Reason::contradiction("b".to_owned()), doubt("c")];
    assert_eq!(Trust::of(&reasons), Trust::Invalid);
    assert_eq!(Trust::of(&reasons).line(&reasons), "INVALID: b; a; c");
}

proptest::proptest! {
    /// Whatever a peer tells, judging it comes to an end.
    #[test]
    fn any_figures_can_be_judged(
        times in proptest::array::uniform6(proptest::num::u64::ANY),
        shares in proptest::array::uniform6(proptest::num::f64::ANY),
    ) {
        let mut draft = sound(Transport::Udp, 5);
        draft.plan.workload.rate = Some(Rate::AllFlows { bps: times[5] });
        let client = draft.client.as_mut().unwrap();
        client.elapsed_ns = times[0];
        client.flows[0].to_ns = Some(times[4]);
        client.machine_cpu[0].user_s = shares[0];
        client.machine_cpu[0].idle_s = shares[1];
        let standstills = Standstills { longest_ns: times[1], at_ns: times[2], total_ns: times[3] };
        *disturbance(&mut draft.client) = Disturbance {
            lateness: Some(standstills),
            wakeup_delay_ns: Some(times[3]),
            silence: Some(standstills),
            wait_s: Some(shares[2]),
            busiest_thread: Some(ThreadDemand { run_s: shares[3], wait_s: shares[4] }),
            quota: Some(Quota { periods: times[0], throttled_periods: times[1] }),
            own_queue: None,
            other_tests: Some(times[2] as u32),
        };
        let status = finished(&draft).status;
        let text = serde_json::to_string(&status.reasons).unwrap();
        serde_json::from_str::<Vec<Reason>>(&text).unwrap();
    }
}
