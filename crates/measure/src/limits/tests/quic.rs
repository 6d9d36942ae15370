//! Limits of QUIC flows, from what both ends counted.

use super::*;

/// A QUIC sender that waited so long, and the packets that it lost.
fn quic_sender(waits: QuicWaits, lost_packets: u64) -> QuicStatus {
    QuicStatus {
        rtt_us: 50_000,
        min_rtt_us: 49_000,
        cwnd_bytes: 1_000_000,
        sent_packets: 10_000,
        lost_packets,
        waits: Some(waits),
        ..QuicStatus::default()
    }
}

#[test]
fn flow_control_of_quic_is_found_with_the_window_that_would_do() {
    let mut draft = transfer(Transport::Quic, 5);
    let (flow_control_ns, congestion_ns) = (Some(4 * SECOND_NS), SECOND_NS);
    let waits = QuicWaits { flow_control_ns, congestion_ns, ..QuicWaits::default() };
    draft.client.as_mut().unwrap().flows[0].quic = Some(quic_sender(waits, 0));
    // One late wake-up explains none of it.
    let stand_still = |draft: &mut Draft, total_ns| {
        let late = Standstills { longest_ns: 150_000_000, at_ns: 1, total_ns };
        let disturbance = Disturbance { lateness: Some(late), ..Disturbance::default() };
        draft.server.as_mut().unwrap().disturbance = Some(Box::new(disturbance));
    };
    stand_still(&mut draft, 150_000_000);
    let mut stopped = draft.clone();
    stand_still(&mut stopped, 4_100_000_000);
    let limit = &finished(stopped).summary.limits[0];
    assert_eq!((limit.place, limit.cause), (Place::Receiver, Cause::ReceiverIdle));
    let mut often = draft.clone();
    often.server.as_mut().unwrap().disturbance = Some(Box::new(Disturbance {
        wakeup_delay_ns: Some(3 * SECOND_NS),
        ..Disturbance::default()
    }));
    assert_eq!(finished(often).summary.limits[0].cause, Cause::ReceiverIdle);
    let [limit] = &finished(draft).summary.limits[..] else { panic!() };
    assert_eq!((limit.place, limit.cause), (Place::ReceiveWindow, Cause::ReceiveWindow));
    assert_eq!((limit.sure, limit.evidence.flow_control_ratio), (true, Some(0.8)));
    // 200 Mbit/s at 50 ms are 1.25 MB.
    let advice = limit.advice.as_deref().unwrap();
    assert_eq!(advice, "a receive window of 1.25 MB carries 200 Mbit/s at 50.00 ms of round trip");
}

#[test]
fn waits_of_quic_without_flow_control_leave_it_to_the_window_in_flight() {
    let mut draft = transfer(Transport::Quic, 5);
    let waits = QuicWaits { application_ns: 5 * SECOND_NS, ..QuicWaits::default() };
    let window = QuicStatus { in_flight_bytes: Some(900_000), ..quic_sender(waits, 0) };
    draft.client.as_mut().unwrap().flows[0].quic = Some(window);
    let limit = &finished(draft.clone()).summary.limits[0];
    assert_eq!((limit.place, limit.evidence.flow_control_ratio), (Place::Path, None));
    let waits = QuicWaits { flow_control_ns: Some(0), ..waits };
    draft.client.as_mut().unwrap().flows[0].quic.as_mut().unwrap().waits = Some(waits);
    assert_eq!(finished(draft).summary.limits[0].cause, Cause::SenderIdle);
}

#[test]
fn rare_losses_of_quic_are_told_and_marks_are_none() {
    let told = |ecn_events, rtt_us| {
        let mut draft = transfer(Transport::Quic, 5);
        let waits = QuicWaits {
            congestion_ns: 5 * SECOND_NS,
            flow_control_ns: Some(0),
            ..QuicWaits::default()
        };
        // 53 packets are Reno's average at one loss of 2,000, and 200 are in flight.
        draft.client.as_mut().unwrap().flows[0].quic = Some(QuicStatus {
            rtt_us,
            min_rtt_us: rtt_us,
            congestion_events: 5,
            ecn_events,
            in_flight_bytes: Some(240_000),
            mtu_bytes: 1200,
            ..quic_sender(waits, 5)
        });
        finished(draft).summary.limits[0].cause
    };
    assert_eq!(told(None, 50_000), Cause::Loss);
    assert_eq!(told(Some(5), 50_000), Cause::Path);
    assert_eq!(told(Some(5), 500_000), Cause::StartUp);
}

#[test]
fn what_the_receivers_socket_dropped_of_quic_is_no_loss_of_the_path() {
    let mut draft = transfer(Transport::Quic, 5);
    let waits = QuicWaits {
        congestion_ns: 5 * SECOND_NS,
        flow_control_ns: Some(0),
        ..QuicWaits::default()
    };
    draft.client.as_mut().unwrap().flows[0].quic = Some(quic_sender(waits, 300));
    let theirs = &mut draft.server.as_mut().unwrap().flows[0];
    theirs.socket = Some(SocketFacts {
        gro: Some(true),
        receive_buffer_bytes: Some(425_984),
        ..SocketFacts::default()
    });
    let drops = |socket_drops| Some(QuicStatus { socket_drops, ..QuicStatus::default() });
    theirs.quic = drops(Some(0));
    assert_eq!(finished(draft.clone()).summary.limits[0].cause, Cause::Loss);
    draft.server.as_mut().unwrap().flows[0].quic = drops(Some(30));
    // The count of a socket that several connections may share is none of one of them.
    let mut shared = draft.clone();
    shared.plan.workload.flows = 2;
    assert_ne!(finished(shared).summary.limits[0].cause, Cause::ReceiverSocket);
    let [limit] = &finished(draft).summary.limits[..] else { panic!() };
    assert_eq!((limit.place, limit.cause), (Place::Receiver, Cause::ReceiverSocket));
    assert_eq!((limit.sure, limit.evidence.socket_drops), (true, Some(30)));
    let advice = limit.advice.as_deref();
    assert_eq!(advice, Some("a receive buffer of more than 426 kB"));
}
