//! Flows that end far apart, where no time is known that all of them shared.

use super::tally::lanes;
use crate::plan::Workload;
use crate::report::{EndReport, FlowReport};

/// Ends of flows that are this share of the time apart make a total another figure than that of all flows together.
const APART: f64 = 0.01;
/// Ends that are closer together than this change no total that counts.
const LEAST_APART_NS: u64 = 50_000_000;

/// How far apart the flows of a direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnevenEnds {
    /// Flows that received anything.
    pub(crate) flows: usize,
    /// From the first end to the last.
    pub(crate) apart_ns: u64,
    /// The time that the total is over.
    pub(crate) time_ns: u64,
}

/// The directions of a stream whose total is over the time of the slowest flow, and of others a part only.
pub(crate) fn uneven_ends(
    workload: &Workload,
    client: Option<&EndReport>,
    server: Option<&EndReport>,
) -> Vec<UnevenEnds> {
    let lanes = lanes(workload, client, server);
    let of_lane = lanes.iter().filter(|lane| lane.is_of_streams() && lane.shared_time().is_none());
    let uneven = of_lane.filter_map(|lane| {
        let receiver = lane.direction.receiver();
        let report = [client, server].into_iter().flatten().find(|one| one.role == receiver)?;
        let has_arrived = |flow: &&FlowReport| {
            let arrived = flow.received.is_some_and(|received| received.bytes > 0);
            arrived && workload.flow_direction(flow.flow) == lane.direction
        };
        let ends: Vec<u64> =
            report.flows.iter().filter(has_arrived).filter_map(|flow| flow.to_ns).collect();
        let apart_ns = ends.iter().max()?.saturating_sub(*ends.iter().min()?);
        let time_ns = lane.receive_time_ns()?;
        let is_far = apart_ns >= LEAST_APART_NS && apart_ns as f64 > time_ns as f64 * APART;
        is_far.then_some(UnevenEnds { flows: ends.len(), apart_ns, time_ns })
    });
    uneven.collect()
}
