//! From a workload to what its flows do.

use linerate_measure::{Arrivals, Closing, Direction, End, Kind, Schedule, Variant, Workload};
use linerate_wire::native::load::{FlowSteps, Load, LoadEnd, LoadKind, LoadSchedule, steps};
use linerate_wire::step::{self, Movement};

/// The steps of one flow of a workload, at both ends.
pub fn flow_steps(workload: &Workload, flow: u32) -> FlowSteps {
    steps(&parameters(workload), flow)
}

/// What stands for a flow of datagrams in each of them. Both ends know it, so that a lost welcome
/// does no harm.
pub(crate) fn flow_tag(token: &[u8; 16], flow: u32) -> u32 {
    let [a, b, c, d, ..] = *token;
    u32::from_be_bytes([a, b, c, d]) ^ flow
}

/// Whether small sends leave at once: what is asked of a stream, and always so for requests and
/// responses, of which a last part would otherwise wait for an acknowledgement.
pub(crate) fn no_delay(workload: &Workload) -> bool {
    workload.socket.no_delay || workload.has_transactions()
}

fn load_schedule(schedule: Schedule) -> LoadSchedule {
    LoadSchedule { per_s: schedule.per_s, poisson: schedule.arrivals == Arrivals::Poisson }
}

fn sent(variant: Variant) -> Movement {
    match variant {
        Variant { zero_copy: true, .. } => Movement::ZeroCopy,
        Variant { splice: true, .. } => Movement::Splice,
        _ => Movement::Copy,
    }
}

fn received(variant: Variant) -> Movement {
    match variant {
        Variant { discard: true, .. } => Movement::Discard,
        Variant { splice: true, .. } => Movement::Splice,
        _ => Movement::Copy,
    }
}

fn parameters(workload: &Workload) -> Load {
    let kind = match workload.kind {
        Kind::Stream { direction, send_bytes } => LoadKind::Stream {
            unit_bytes: send_bytes,
            up_flows: if direction == Direction::Down { 0 } else { workload.flows },
            down_flows: if direction == Direction::Up { 0 } else { workload.flows },
            sent: sent(workload.variant),
            received: received(workload.variant),
        },
        Kind::Rr { request_bytes, response_bytes, timeout_ns, .. } => LoadKind::Rr {
            request_bytes,
            response_bytes,
            timeout_ns,
            outstanding: workload.outstanding(),
            schedule: workload.schedule().map(load_schedule),
            flows: workload.flows,
        },
        Kind::Connect { request_bytes, response_bytes, timeout_ns, close, .. } => {
            LoadKind::Connect {
                request_bytes,
                response_bytes,
                timeout_ns,
                close: match close {
                    Closing::Fin => step::Closing::Fin,
                    Closing::Rst => step::Closing::Rst,
                    Closing::Server => step::Closing::Server,
                },
                schedule: workload.schedule().map(load_schedule),
                flows: workload.flows,
            }
        }
    };
    Load {
        kind,
        datagrams: workload.has_datagrams(),
        end: match workload.end {
            End::Time { duration_ns } => {
                LoadEnd::Time { duration_ns: duration_ns.saturating_add(workload.omit_ns) }
            }
            End::Bytes { bytes } => LoadEnd::Bytes { bytes },
            End::Count { count } => LoadEnd::Count { count },
        },
        pace_bps_per_flow: workload.rate_per_flow_bps(),
        verify: workload.verify,
    }
}
