//! Limits over paths with round trips, queues, jitter and proxies.

use super::*;

#[test]
fn a_sender_that_waits_for_its_turn_is_paced_however_long_the_round_trip() {
    let paced = |notsent_bytes, sndbuf| {
        let facts = between(&FIXTURES[3], &[0.5; 9]);
        let evidence = LimitEvidence {
            busy_ratio: Some(1.0),
            notsent_bytes: Some(notsent_bytes),
            sndbuf_limited_ratio: Some(sndbuf),
            lost_ratio: Some(0.0),
            ..facts.evidence
        };
        let facts = Facts { evidence, keeps_rate: true, ..facts };
        let limit = tcp(&facts);
        (limit, is_clear(&facts, limit.1))
    };
    assert_eq!(paced(900, 0.0), ((Place::Sender, Cause::OwnPacing), true));
    assert_eq!(paced(12 << 10, 0.0), ((Place::Sender, Cause::OwnPacing), false));
    assert_eq!(paced(400_000, 0.0).0, (Place::Path, Cause::PathRate));
    assert_eq!(paced(900, 0.4).0, (Place::SendBuffer, Cause::SendBuffer));
}

#[test]
fn a_queue_that_is_short_against_the_round_trip_is_the_paths_rate() {
    let told = |rtt_us, rtt_var_us| {
        let mut facts = Facts { rtt_var_us: Some(rtt_var_us), ..between(&PLAIN, &[0.5; 9]) };
        (facts.evidence.rtt_us, facts.evidence.min_rtt_us) = (Some(rtt_us), Some(30_000));
        let cause = tcp(&facts).1;
        (cause, is_clear(&facts, cause))
    };
    assert_eq!(told(33_000, 150), (Cause::PathRate, false));
    assert_eq!(told(33_000, 2000), (Cause::Path, false), "jitter");
    assert_eq!(told(30_900, 50), (Cause::Path, false));
}

/// 1,000 datagrams of which `received` came; delays of each quarter in `more_ms`.
fn datagrams_of(received: u64, more_ms: &[u64]) -> Limit {
    let mut draft = transfer(Transport::Udp, 5);
    draft.plan.workload.rate = Some(Rate::AllFlows { bps: 100_000_000 });
    let counts =
        |sent, received| Some(DatagramCounts { sent, received, ..DatagramCounts::default() });
    draft.client.as_mut().unwrap().flows[0].datagrams = counts(Some(1000), None);
    let theirs = &mut draft.server.as_mut().unwrap().flows[0];
    theirs.datagrams = counts(None, Some(received));
    theirs.transit = transit(more_ms);
    finished(draft).summary.limits[0].clone()
}

#[test]
fn the_delays_of_datagrams_tell_a_full_queue_from_random_loss() {
    let full: Vec<u64> = (0..400).map(|number| number.min(40) / 2 + number % 2).collect();
    let limit = datagrams_of(970, &full);
    assert_eq!((limit.place, limit.cause, limit.sure), (Place::Path, Cause::PathRate, true));
    assert_eq!(limit.evidence.queueing_ns, Some(21_000_000));
    let limit = datagrams_of(970, &[0; 400]);
    assert_eq!((limit.cause, limit.sure), (Cause::Loss, true));
    let jitter: Vec<u64> = (0..400).map(|number| number * 7 % 30).collect();
    assert_eq!(datagrams_of(970, &jitter).cause, Cause::Loss);
    let limit = datagrams_of(970, &[]);
    assert_eq!((limit.cause, limit.sure), (Cause::Loss, false), "nothing tells of a queue");
}

#[test]
fn a_deep_queue_that_grows_is_no_rate_that_was_kept() {
    let growing: Vec<u64> = (0..400).map(|number| number / 2).collect();
    let limit = datagrams_of(1000, &growing);
    assert_eq!((limit.place, limit.cause, limit.sure), (Place::Path, Cause::PathRate, true));
    let jitter: Vec<u64> = (0..400).map(|number| number * 7 % 30).collect();
    let limit = datagrams_of(1000, &jitter);
    assert_eq!((limit.cause, limit.sure), (Cause::OwnPacing, true));
    // The way became longer once, for all that came later.
    let step: Vec<u64> = (0..400).map(|number| if number < 190 { 0 } else { 50 }).collect();
    assert_eq!(datagrams_of(1000, &step).cause, Cause::OwnPacing);
}

#[test]
fn datagrams_that_became_too_long_for_the_path_are_no_queue_of_the_sender() {
    let limit = |mtu_bytes| {
        let mut draft = transfer(Transport::Quic, 5);
        draft.plan.workload.use_quic_datagrams();
        let Kind::Stream { send_bytes, .. } = &mut draft.plan.workload.kind else { panic!() };
        *send_bytes = 1400;
        let flow = &mut draft.client.as_mut().unwrap().flows[0];
        flow.quic = Some(QuicStatus { mtu_bytes, ..QuicStatus::default() });
        flow.datagrams = Some(DatagramCounts {
            sent: Some(500),
            refused: Some(500),
            ..DatagramCounts::default()
        });
        finished(draft).summary.limits[0].clone()
    };
    let short = limit(1272);
    assert_eq!((short.place, short.cause, short.sure), (Place::Path, Cause::PathMtu, false));
    assert_eq!(short.evidence.path_mtu_bytes, Some(1272));
    assert_eq!(limit(1472).cause, Cause::LocalQueue);
}

#[test]
fn what_the_own_device_drops_or_holds_back_of_datagrams_is_its_queues() {
    let shares = DatagramShares { lost: 0.3, dropped_here: 0.25, ..DatagramShares::default() };
    let kept = Facts { keeps_rate: true, ..Facts::default() };
    assert_eq!(datagrams(&kept, shares), (Place::LocalQueue, Cause::LocalQueue));
    let missed = Facts { misses_rate: true, local_queue_ratio: Some(0.5), ..Facts::default() };
    assert_eq!(datagrams(&missed, DatagramShares::default()).1, Cause::LocalQueue);
    let idle = Facts { local_queue_ratio: None, ..missed };
    assert_eq!(datagrams(&idle, DatagramShares::default()).1, Cause::SenderIdle);
}

#[test]
fn streams_whose_own_windows_hold_them_up_are_not_idle() {
    let seen = |blocked| QuicFacts {
        nothing_to_send_ratio: Some(0.9),
        blocked_per_round_trip: Some(blocked),
        in_flight_ratio: Some(0.1),
        ..QuicFacts::default()
    };
    let facts = between(&PLAIN, &[0.5; 9]);
    assert_eq!(quic(&facts, seen(4.0)), (Place::ReceiveWindow, Cause::ReceiveWindow));
    assert_eq!(quic(&facts, seen(0.1)), (Place::Sender, Cause::SenderIdle));
}

/// Samples of both ends of a sender of which everything is acknowledged, with what had come in each second.
fn proxied(received_bytes: u64) -> Draft {
    let mut draft = transfer(Transport::Tcp, 4);
    let status = |second: u64| TcpStatus {
        notsent_bytes: Some(100_000),
        unacked_segments: Some(10),
        ..held_by_window(second)
    };
    draft.samples = samples_of(4, status);
    let theirs = draft.samples.iter().map(|sample| Sample {
        role: Role::Server,
        flows: vec![FlowSample {
            received_bytes: Some(received_bytes),
            tcp: Some(TcpStatus { receive_queue_bytes: Some(0), ..TcpStatus::default() }),
            ..FlowSample::default()
        }],
        ..sample.clone()
    });
    let theirs: Vec<Sample> = theirs.collect();
    draft.samples.extend(theirs);
    draft.client.as_mut().unwrap().flows[0].tcp = Some(status(4));
    draft
}

#[test]
fn bytes_that_are_acknowledged_far_ahead_of_the_receiver_are_no_window_of_it() {
    let run = finished(proxied(5_000_000));
    let limit = &run.summary.limits[0];
    assert_eq!((limit.place, limit.cause, limit.sure), (Place::Path, Cause::Path, false));
    assert!(limit.evidence.acknowledged_ahead_bytes > Some(10_000_000), "{limit:?}");
    let advice = limit.advice.as_deref().unwrap();
    assert!(advice.contains("proxy"), "{advice}");
    let direct = finished(proxied(12_480_000));
    let limit = &direct.summary.limits[0];
    assert_eq!(
        (limit.cause, limit.evidence.acknowledged_ahead_bytes),
        (Cause::ReceiveWindow, None)
    );
}
