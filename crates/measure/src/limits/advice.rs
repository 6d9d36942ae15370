//! What to change, with a number.

use super::Cause;
use super::rules::{Facts, TREND};
use crate::trust::OWN_PROCESSORS;
use crate::units::{render_bytes, render_percent, render_rate};

/// Where no rate was asked for, the advice is for so many times the rate that was reached.
const MORE: f64 = 2.0;
/// A thread that waited for more than this share of its demand had no processor: more threads would wait as well.
const WAITING: f64 = 0.5;

/// The advice for a flow that sent at this rate.
pub(super) fn advice(
    cause: Cause,
    facts: &Facts,
    bps: f64,
    asked_bps: Option<f64>,
) -> Option<String> {
    let evidence = &facts.evidence;
    let wanted_bps = asked_bps.filter(|asked| *asked > bps).unwrap_or(bps * MORE);
    let rtt_s = evidence.rtt_us.map(|us| f64::from(us) / 1e6);
    let window = |what: &str| {
        let bytes = (wanted_bps / 8.0 * rtt_s?) as u64;
        let (bytes, rate) = (render_bytes(bytes.max(1)), render_rate(wanted_bps));
        Some(format!("{what} of {bytes} carries {rate} at {}", rtt(evidence.rtt_us?)))
    };
    match cause {
        Cause::SendBuffer => window("a send buffer"),
        Cause::ReceiveWindow => window("a receive window"),
        Cause::Path => {
            let ahead = render_bytes(evidence.acknowledged_ahead_bytes?);
            Some(format!(
                "{ahead} were acknowledged before they came to the receiver: a proxy on the way ends the \
                 connection, and round trips, losses and windows are those of the way to it"
            ))
        }
        Cause::PathMtu => {
            let mtu = evidence.path_mtu_bytes?;
            Some(format!("a UDP payload of {mtu} bytes fits: use smaller datagrams (--size)"))
        }
        Cause::PathRate if evidence.queueing_ns.is_some() => {
            let queued_s = evidence.queueing_ns? as f64 / 1e9;
            let queued = (bps * (1.0 - evidence.lost_ratio.unwrap_or(0.0)) / 8.0 * queued_s) as u64;
            Some(format!("{} stand in a queue", render_bytes(queued)))
        }
        Cause::PathRate => {
            let queued_s = rtt_s? - f64::from(evidence.min_rtt_us?) / 1e6;
            let queued = (bps / 8.0 * queued_s.max(0.0)) as u64;
            Some(format!("{} stand in a queue", render_bytes(queued)))
        }
        Cause::StartUp => {
            let way_out = "test for several times as long, or leave out a warm-up";
            match facts.trend.filter(|trend| *trend > TREND) {
                Some(trend) => {
                    let more = (trend - 1.0) * 100.0;
                    Some(format!(
                        "the rate still grew by {more:.0} % from the second to the last quarter: {way_out}"
                    ))
                }
                None => {
                    Some(format!("the test took {:.0} round trips: {way_out}", facts.round_trips?))
                }
            }
        }
        Cause::LocalCpu => processor(evidence.demand_sender?, facts.sender_wait_ratio),
        Cause::RemoteCpu => processor(evidence.demand_receiver?, facts.receiver_wait_ratio),
        Cause::ReceiverSocket => {
            let bytes = facts.receive_buffer_bytes?;
            Some(format!("a receive buffer of more than {}", render_bytes(bytes)))
        }
        Cause::Loss => {
            let lost = render_percent(evidence.lost_ratio?);
            Some(format!(
                "{lost} were lost: random, or at a shallow buffer or policer; a run at half of the rate \
                 tells"
            ))
        }
        _ => None,
    }
}

fn processor(demand: f64, wait_ratio: Option<f64>) -> Option<String> {
    let percent = demand * 100.0;
    if let Some(ratio) = wait_ratio.filter(|ratio| *ratio > WAITING) {
        let waited = percent * ratio;
        return Some(format!(
            "a thread waited {waited:.0} % of the time for a processor that other work used: \
             {OWN_PROCESSORS}"
        ));
    }
    Some(format!("a thread took {percent:.0} % of a processor: use more flows and threads"))
}

fn rtt(us: u32) -> String {
    format!("{:.2} ms of round trip", f64::from(us) / 1e3)
}
