//! Whether the peer's times fit this end's own clock.
//!
//! A rate is bytes over a time, and where the peer receives, both are the peer's word. Bytes can't
//! arrive faster than they are sent, and nothing takes longer than the whole load took here.

use super::judge::way_of;
use super::tally::{Lane, lanes};
use crate::plan::{Direction, Workload};
use crate::report::EndReport;

/// A receiver's time may be shorter than the sender's by this share: clocks differ, queues burst.
const SHORTER_BY: f64 = 0.1;
/// And by this much besides: the receiver may be late for the first byte.
const SHORTER_BY_NS: u64 = 250_000_000;
/// Bytes that arrive within a shorter time say nothing about a rate.
const SHORTEST_RATE_NS: u64 = 1_000_000;
/// A load that was sent for so long can't arrive in such a time.
const TOO_LONG_FOR_IT_NS: u64 = 20_000_000;
/// A time may be longer than the load took by this share: the two clocks may differ.
const LONGER_BY: f64 = 0.01;
/// And by this much besides: the server's load begins before the client's.
const LONGER_BY_NS: u64 = 1_000_000_000;

/// Why the times of one direction contradict its bytes or each other.
pub(super) fn judge_span(lane: &Lane, reasons: &mut Vec<String>) {
    let (Some(received), Some(receiving)) = (lane.received(), &lane.receiving) else {
        return;
    };
    if received.bytes == 0 {
        return;
    }
    let end = lane.direction.receiver().name();
    let Some(span_ns) = receiving.span.length_ns().filter(|ns| *ns > 0) else {
        // A client may have received everything of a short load before its own began.
        if lane.direction != Direction::Down {
            let bytes = received.bytes;
            reasons.push(format!(
                "the {end} counted {bytes} bytes {} and no time, so there is no rate",
                way_of(lane)
            ));
        }
        return;
    };
    let Some(least_ns) = lane.least_time_ns(received.bytes) else { return };
    if is_shorter(span_ns, least_ns) {
        reasons.push(format!(
            "{} bytes arrived {} within {} s by the {end}'s clock, and were sent within {} s by \
             the {}'s",
            received.bytes,
            way_of(lane),
            seconds(span_ns),
            seconds(least_ns as u64),
            lane.direction.sender().name(),
        ));
    }
}

/// Whether a time is too short for bytes that took `least_ns` to be sent.
pub(super) fn is_shorter(time_ns: u64, least_ns: f64) -> bool {
    let too_short = least_ns * (1.0 - SHORTER_BY) > time_ns.saturating_add(SHORTER_BY_NS) as f64;
    too_short || (time_ns < SHORTEST_RATE_NS && least_ns > TOO_LONG_FOR_IT_NS as f64)
}

/// The reasons why the server's times aren't to be trusted, where the client's load took
/// `load_ns` from its opening until the server's result had come: none of the server's times is
/// longer than that.
pub fn judge_server_times(workload: &Workload, server: &EndReport, load_ns: u64) -> Vec<String> {
    let most_ns = load_ns as f64 * (1.0 + LONGER_BY) + LONGER_BY_NS as f64;
    let of_server = lanes(workload, None, Some(server));
    of_server
        .iter()
        .filter_map(|lane| {
            let (did, time_ns) = match lane.direction {
                Direction::Down => ("sent", lane.send_time_ns()?),
                Direction::Up | Direction::Both => ("received", lane.receive_time_ns()?),
            };
            (time_ns as f64 > most_ns).then(|| {
                format!(
                    "the server {did} for {} s by its own clock, and the whole load took {} s by \
                     the client's",
                    seconds(time_ns),
                    seconds(load_ns),
                )
            })
        })
        .collect()
}

/// With as many digits as a short time needs.
fn seconds(time_ns: u64) -> String {
    let seconds = time_ns as f64 / 1e9;
    if time_ns < 10_000_000 { format!("{seconds:.9}") } else { format!("{seconds:.3}") }
}
