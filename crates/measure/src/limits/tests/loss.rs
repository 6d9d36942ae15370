//! Losses, and what stands beside them.

use super::*;

#[test]
fn rare_losses_limit_a_window_that_they_keep_small() {
    let told = |kept_window, lost, longer| {
        let mut facts = Facts { kept_window, ..between(&FIXTURES[10], &[0.5; 9]) };
        facts.evidence.lost_ratio = Some(lost);
        facts.evidence.rtt_us = Some(longer);
        let in_flight = QuicFacts { in_flight_ratio: Some(0.9), ..QuicFacts::default() };
        assert_eq!(tcp(&facts), quic(&facts, in_flight));
        (tcp(&facts).1, is_clear(&facts, Cause::Loss))
    };
    assert_eq!(told(Some(1.0), 0.0001, 20_000), (Cause::Loss, false));
    assert_eq!(told(Some(0.1), 0.0001, 20_000), (Cause::Loss, false));
    assert_eq!(told(Some(9.0), 0.0001, 20_000), (Cause::Path, false));
    assert_eq!(told(None, 0.0001, 20_000), (Cause::Path, false));
    assert_eq!(told(Some(9.0), 0.002, 20_000), (Cause::Loss, true));
    assert_eq!(told(Some(1.0), 0.0001, 30_000), (Cause::PathRate, false));
}

#[test]
fn the_receive_window_is_held_up_where_many_segments_are_lost() {
    let mut facts = between(&FIXTURES[10], &[0.5; 9]);
    facts.evidence.rwnd_limited_ratio = Some(0.3);
    assert_eq!(tcp(&facts).1, Cause::ReceiveWindow);
    facts.evidence.lost_ratio = Some(0.05);
    assert_eq!(tcp(&facts).1, Cause::Loss);
    facts.evidence.rwnd_limited_ratio = Some(0.6);
    assert_eq!(tcp(&facts).1, Cause::ReceiveWindow);
}
