//! From a workload to the steps of each of its flows, the same at both ends.

use super::{
    Churn, Close, Content, Exchange, FlowSchedule, Framing, Life, LifeStep, Movement, Pace, Step,
    StepEnd, Transfer,
};
use crate::{Closing, Direction, End, Kind, Schedule, Variant, Workload};

/// The most that a paced flow sends at once: 1 ms worth of its pace.
pub const BURST_NS: u64 = 1_000_000;

/// A paced flow over a connection sends at least so much at once, or it would send more headers than payload:
/// what fits a packet on every path, with the headers of TLS, or of QUIC in its shortest packets (RFC 9000,
/// section 14: 1,200 bytes).
pub const LEAST_SEND_BYTES: u32 = 1_150;

/// Distance in the pattern between the first bytes of neighbouring flows. A prime, so that bytes
/// that end up in the wrong flow don't look right there.
pub const PATTERN_STRIDE: u64 = 7919;

/// What one flow does at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSteps {
    /// At the client.
    pub client: Vec<Step>,
    /// At the server.
    pub server: Vec<Step>,
}

/// What flow number `flow` does at both ends. A number past the last flow has no steps, nor has one whose bytes
/// another flow's connection carries ([`Workload::opened_flows`]).
///
/// The sender's (or the requester's) step has the end; the other's ends by its peer. Of a
/// connection, that same end closes first, gracefully, and the other after it. A UDP association
/// has nothing to close, and connections that come and go are closed as their step says.
pub fn flow_steps(workload: &Workload, flow: u32) -> FlowSteps {
    if flow >= workload.opened_flows() {
        return FlowSteps { client: Vec::new(), server: Vec::new() };
    }
    if let (Kind::Stream { send_bytes, .. }, true) = (&workload.kind, workload.payload.duplex) {
        return duplex(workload, *send_bytes, flow);
    }
    let (mut leading, mut following) = match workload.kind {
        Kind::Stream { send_bytes, .. } => stream(workload, send_bytes, flow),
        Kind::Rr { .. } => rr(workload, flow),
        Kind::Connect { .. } => connect(workload, flow),
    };
    let stays = !matches!(workload.kind, Kind::Connect { .. });
    if stays && !workload.has_datagrams() {
        leading.push(Step::Close(Close::Graceful));
        following.push(Step::Close(Close::AfterPeer));
    }
    match workload.flow_direction(flow) {
        Direction::Down => FlowSteps { client: following, server: leading },
        _ => FlowSteps { client: leading, server: following },
    }
}

/// Both directions over one connection: this flow up, and the one that is as many further on as go up down.
fn duplex(workload: &Workload, unit_bytes: u32, flow: u32) -> FlowSteps {
    let (up_sent, up_received) = transfers(workload, unit_bytes, flow);
    let (down_sent, down_received) = transfers(workload, unit_bytes, flow + workload.flows);
    let client = Step::Duplex { send: Box::new(up_sent), receive: Box::new(down_received) };
    let server = Step::Duplex { send: Box::new(down_sent), receive: Box::new(up_received) };
    FlowSteps {
        client: vec![client, Step::Close(Close::Graceful)],
        server: vec![server, Step::Close(Close::Graceful)],
    }
}

fn stream(workload: &Workload, unit_bytes: u32, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let (send, receive) = transfers(workload, workload.unit_bytes().unwrap_or(unit_bytes), flow);
    (vec![Step::Send(send)], vec![Step::Receive(receive)])
}

/// What is sent of a flow's bulk, and what is received at the other end.
fn transfers(workload: &Workload, unit_bytes: u32, flow: u32) -> (Transfer, Transfer) {
    let receive = Transfer {
        end: StepEnd::Peer,
        unit_bytes,
        pace: None,
        frames: workload.frames_of(flow),
        content: content(workload, flow),
        framing: framing(workload),
        movement: match workload.payload.variant {
            Variant { discard: true, .. } => Movement::Discard,
            Variant { splice: true, .. } => Movement::Splice,
            _ => Movement::Copy,
        },
        yields: true,
    };
    let send = Transfer {
        end: end_of(workload, flow),
        pace: workload
            .rate_per_flow_bps()
            .filter(|_| workload.frames().is_none())
            .map(|bps| pace_of(workload, flow, bps, unit_bytes)),
        movement: match workload.payload.variant {
            Variant { zero_copy: true, .. } => Movement::ZeroCopy,
            Variant { splice: true, .. } => Movement::Splice,
            _ => Movement::Copy,
        },
        ..receive.clone()
    };
    (send, receive)
}

fn rr(workload: &Workload, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let Kind::Rr { request_bytes, response_bytes, timeout_ns, .. } = workload.kind else {
        return (Vec::new(), Vec::new());
    };
    let answer = Exchange {
        end: StepEnd::Peer,
        request_bytes,
        response_bytes,
        outstanding: workload.outstanding(),
        schedule: None,
        timeout_ns: None,
        content: content(workload, flow),
        framing: framing(workload),
    };
    let exchange = Exchange {
        end: end_of(workload, flow),
        schedule: workload.schedule().map(|all| schedule_of(all, workload.flows, flow)),
        timeout_ns: workload.has_datagrams().then_some(timeout_ns),
        ..answer.clone()
    };
    (vec![Step::Exchange(exchange)], vec![Step::Answer(answer)])
}

fn connect(workload: &Workload, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let Kind::Connect {
        request_bytes, response_bytes, timeout_ns, close, transfer, hold_ns, ..
    } = workload.kind
    else {
        return (Vec::new(), Vec::new());
    };
    let (closes, follows) = match close {
        Closing::Fin => (Close::AtOnce, Close::AfterPeer),
        Closing::Rst => (Close::Reset, Close::AfterReset),
        Closing::Server => (Close::AfterPeer, Close::AtOnce),
    };
    let mut life = match transfer {
        Some(transfer) => transfer.life(closes, workload.payload.verify),
        None => Life::exchange(request_bytes, response_bytes, closes),
    };
    let accept = Churn {
        end: StepEnd::Peer,
        // While the client holds a connection open, it sends nothing to its server.
        timeout_ns: timeout_ns.saturating_add(hold_ns),
        schedule: None,
        life: life.mirrored(follows),
    };
    if hold_ns > 0 {
        life.steps.push(LifeStep::Hold { time_ns: hold_ns });
    }
    let connect = Churn {
        end: end_of(workload, flow),
        timeout_ns,
        schedule: workload.schedule().map(|all| schedule_of(all, workload.flows, flow)),
        life,
    };
    (vec![Step::Connect(Box::new(connect))], vec![Step::Accept(Box::new(accept))])
}

fn framing(workload: &Workload) -> Framing {
    if workload.has_datagrams() { Framing::DatagramHeader } else { Framing::None }
}

fn content(workload: &Workload, flow: u32) -> Content {
    if workload.payload.verify {
        Content::Pattern { offset: u64::from(flow) * PATTERN_STRIDE }
    } else {
        Content::Filler
    }
}

/// The pace of one flow. Where a single send is more than a quarter of a burst, the flows of a direction begin
/// one after the other, spread over the time from one send of a flow to its next: all at once they would send more
/// than a burst. Faster ones together send a quarter of one, and take turns for no gain and more wake-ups.
fn pace_of(workload: &Workload, flow: u32, bps: u64, unit_bytes: u32) -> Pace {
    let least_bytes =
        if workload.has_datagrams() { unit_bytes } else { unit_bytes.min(LEAST_SEND_BYTES) };
    let least_ns = u128::from(least_bytes) * 8_000_000_000 / u128::from(bps.max(1));
    let between_ns = if least_ns > u128::from(BURST_NS / 4) { least_ns } else { 0 };
    let flows = workload.flows.max(1);
    let first_ns = between_ns * u128::from(flow % flows) / u128::from(flows);
    let first_ns = u64::try_from(first_ns).unwrap_or(u64::MAX);
    Pace::Even { bps, burst_ns: BURST_NS, least_bytes, first_ns }
}

/// The part of the end that falls to one flow.
fn end_of(workload: &Workload, flow: u32) -> StepEnd {
    match workload.end {
        End::Time { duration_ns } => {
            StepEnd::Time { duration_ns: duration_ns.saturating_add(workload.omit_ns) }
        }
        End::Count { count } => StepEnd::Count { count: workload.shares(count, flow) },
        End::Bytes { bytes } => StepEnd::Bytes { bytes: workload.shares(bytes, flow) },
    }
}

/// The part of the schedule that falls to one flow. Evenly, the flows take turns; at random, each
/// has its own random numbers, and their sum is again a Poisson process.
fn schedule_of(all: Schedule, flows: u32, flow: u32) -> FlowSchedule {
    FlowSchedule {
        per_s: all.per_s / f64::from(flows.max(1)),
        arrivals: all.arrivals,
        seed: u64::from(flow),
        first_ns: (f64::from(flow) * 1e9 / all.per_s) as u64,
    }
}

#[cfg(test)]
mod tests;
