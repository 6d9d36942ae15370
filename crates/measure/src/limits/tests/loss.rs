//! Losses: frequent ones, and rare ones that hold a large congestion window.

use super::*;

#[test]
fn rare_losses_limit_a_window_of_about_their_average() {
    let told = |loss_window_ratio, lost, rtt_us| {
        let mut facts = between(&FIXTURES[10], &[0.5; 9]);
        facts.evidence.loss_window_ratio = loss_window_ratio;
        facts.evidence.lost_ratio = Some(lost);
        facts.evidence.rtt_us = Some(rtt_us);
        let in_flight = QuicFacts { in_flight_ratio: Some(0.9), ..QuicFacts::default() };
        assert_eq!(tcp(&facts), quic(&facts, in_flight));
        (tcp(&facts).1, is_clear(&facts, Cause::Loss))
    };
    assert_eq!(told(Some(1.0), 0.0001, 20_000), (Cause::Loss, false));
    assert_eq!(told(Some(0.1), 0.0001, 20_000), (Cause::Loss, false));
    assert_eq!(told(Some(0.01), 0.0001, 20_000), (Cause::Path, false));
    assert_eq!(told(Some(9.0), 0.0001, 20_000), (Cause::Path, false));
    assert_eq!(told(None, 0.0001, 20_000), (Cause::Path, false));
    assert_eq!(told(Some(9.0), 0.002, 20_000), (Cause::Loss, true));
    assert_eq!(told(Some(1.0), 0.0001, 30_000), (Cause::PathRate, false));
}

#[test]
fn a_rate_that_grows_beside_rare_losses_is_still_starting_up() {
    let mut facts = Facts { trend: Some(2.0), ..between(&FIXTURES[10], &[0.5; 9]) };
    facts.evidence.loss_window_ratio = Some(1.0);
    facts.evidence.lost_ratio = Some(0.0001);
    assert_eq!(tcp(&facts).1, Cause::StartUp);
}

#[test]
fn many_losses_outweigh_a_receive_window_below_half() {
    let told = |rwnd, lost| {
        let mut facts = between(&FIXTURES[10], &[0.5; 9]);
        facts.evidence.rwnd_limited_ratio = Some(rwnd);
        facts.evidence.lost_ratio = Some(lost);
        let cause = tcp(&facts).1;
        (cause, is_clear(&facts, cause))
    };
    assert_eq!(told(0.3, 0.0), (Cause::ReceiveWindow, false));
    assert_eq!(told(0.3, 0.05), (Cause::Loss, false));
    assert_eq!(told(0.1, 0.05), (Cause::Loss, true));
    assert_eq!(told(0.6, 0.05), (Cause::ReceiveWindow, true));
}

/// What the kernel says of a sender of 1,250-byte segments that was never idle, over a path of 100 ms.
fn busy(second: u64, retransmitted_segments: u32) -> TcpStatus {
    TcpStatus {
        rtt_us: 100_000,
        min_rtt_us: Some(99_000),
        mss_bytes: 1250,
        busy_us: Some(second * 1_000_000),
        notsent_bytes: Some(400_000),
        retransmitted_segments,
        ..TcpStatus::default()
    }
}

#[test]
fn the_window_in_use_and_the_rate_of_losses_come_from_the_report() {
    // 50,000 segments in 50 round trips: a window of 1,000.
    let limit = |congestion: &str, again| {
        let mut draft = transfer(Transport::Tcp, 5);
        let flow = &mut draft.client.as_mut().unwrap().flows[0];
        flow.tcp = Some(busy(5, again));
        flow.queues =
            Some(SocketQueues { notsent_bytes: Some(400_000), ..SocketQueues::default() });
        flow.socket =
            Some(SocketFacts { congestion: Some(congestion.to_owned()), ..SocketFacts::default() });
        finished(draft).summary.limits[0].clone()
    };
    let rare = limit("cubic", 10);
    assert_eq!(rare.cause, Cause::Loss);
    // 1.054 x 500^0.75 segments.
    assert!((rare.evidence.loss_window_ratio.unwrap() - 0.1115).abs() < 0.001, "{rare:?}");
    let advice = rare.advice.as_deref().unwrap();
    assert!(advice.starts_with("0.020 % were lost"), "{advice}");
    assert_eq!(limit("reno", 10).cause, Cause::Loss);
    assert_eq!(limit("bbr", 10).cause, Cause::Path);
    assert_eq!(limit("cubic", 1).cause, Cause::Loss);
    assert_eq!(limit("cubic", 0).cause, Cause::Path);
}

#[test]
fn losses_of_one_interval_are_none_of_the_others() {
    let mut draft = transfer(Transport::Tcp, 10);
    draft.samples = samples_of(10, |second| busy(second, 200));
    let flow = &mut draft.client.as_mut().unwrap().flows[0];
    flow.tcp = Some(busy(10, 200));
    flow.queues = Some(SocketQueues { notsent_bytes: Some(400_000), ..SocketQueues::default() });
    let cubic = SocketFacts { congestion: Some("cubic".to_owned()), ..SocketFacts::default() };
    flow.socket = Some(cubic);
    let limit = &finished(draft).summary.limits[0];
    assert_eq!((limit.cause, limit.share, limit.sure), (Cause::Loss, Some(0.1), false));
}
