//! Time in which nothing arrived of a stream that was to be sent all the time.

use super::Lane;
use crate::plan::{End, Kind, Workload};
use crate::sample::Sample;

/// A silence shorter than this, all its intervals together, is not told.
const SHORTEST_S: f64 = 1.0;
/// An interval in which so few units were due may be empty by its rate.
const UNITS_DUE: f64 = 2.0;

/// Seconds of the receiver's samples, and those in which anything arrived, where the others come to
/// a second or more. Where nothing arrived at all, that is no silence but a reason to trust nothing.
pub(super) fn silence(workload: &Workload, lane: &Lane, samples: &[Sample]) -> Option<(f64, f64)> {
    let Kind::Stream { send_bytes, .. } = workload.kind else {
        return None;
    };
    let unit_bytes = match workload.frame_datagrams() {
        // A frame's datagrams are sent at once.
        Some((datagrams, bytes)) => datagrams as f64 * f64::from(bytes),
        None => f64::from(send_bytes),
    };
    let receiver = lane.direction.receiver();
    // What the path still holds when the time is up arrives with pauses.
    let ends_ns = match (workload.end, lane.shared_time()) {
        (End::Time { duration_ns }, Some(shared)) => {
            shared.to_ns.max(shared.from_ns.saturating_add(duration_ns))
        }
        _ => u64::MAX,
    };
    let length_s = |sample: &Sample| sample.to_ns.saturating_sub(sample.from_ns) as f64 / 1e9;
    let has_to = |sample: &Sample| {
        let per_s = workload.rate_per_flow_bps().map_or(f64::INFINITY, |bps| {
            bps as f64 * f64::from(workload.flows) / (unit_bytes * 8.0)
        });
        per_s * length_s(sample) >= UNITS_DUE
    };
    let (mut all_s, mut arriving_s) = (0.0, 0.0);
    let measured = samples.iter().filter(|one| one.role == receiver && !one.warm_up);
    for sample in measured.filter(|one| one.from_ns < ends_ns) {
        let arrived = sample.received.is_some_and(|received| received.bytes > 0);
        all_s += length_s(sample);
        if arrived || !has_to(sample) {
            arriving_s += length_s(sample);
        }
    }
    (arriving_s > 0.0 && all_s - arriving_s >= SHORTEST_S).then_some((all_s, arriving_s))
}
