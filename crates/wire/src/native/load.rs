//! From a load's plain parameters to the steps of each of its flows, the same at both ends.

use crate::step::{
    Arrivals, Close, Closing, Connection, Content, Exchange, Framing, Movement, Pace, Schedule,
    Step, StepEnd, Transfer,
};

/// The most that a paced flow sends at once: 1 ms worth of its pace.
pub const BURST_NS: u64 = 1_000_000;

/// A paced flow over a connection sends at least so much at once, or it would send more headers than payload:
/// what fits a packet on every path, with the headers of TLS, or of QUIC in its shortest packets (RFC 9000,
/// section 14: 1,200 bytes).
pub const LEAST_SEND_BYTES: u32 = 1_150;

/// Distance in the pattern between the first bytes of neighbouring flows. A prime, so that bytes
/// that end up in the wrong flow don't look right there.
pub const PATTERN_STRIDE: u64 = 7919;

/// What all flows of a test do together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Bulk transfer or request and response.
    pub kind: LoadKind,
    /// Whether flows are UDP associations (otherwise connections).
    pub datagrams: bool,
    /// When it ends.
    pub end: LoadEnd,
    /// Bits of payload per second that each sender of a stream keeps to.
    pub pace_bps_per_flow: Option<u64>,
    /// Whether a pattern is sent and checked.
    pub verify: bool,
}

/// Bulk transfer or request and response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadKind {
    /// Bulk transfer. Flows 0 to `up_flows - 1` go from client to server, the `down_flows` after
    /// them from server to client.
    Stream {
        /// Bytes of one call or of one datagram's payload.
        unit_bytes: u32,
        /// Flows from client to server.
        up_flows: u32,
        /// Flows from server to client.
        down_flows: u32,
        /// How senders move the bytes.
        sent: Movement,
        /// How receivers move them.
        received: Movement,
    },
    /// Request and response.
    Rr {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How long a datagram's response is waited for.
        timeout_ns: u64,
        /// Requests that may be on their way at once in each flow.
        outstanding: u32,
        /// When requests are due.
        schedule: Option<LoadSchedule>,
        /// Flows.
        flows: u32,
    },
    /// Connections that come and go, one at a time in each flow.
    Connect {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
        /// How long a connection may take.
        timeout_ns: u64,
        /// Who closes, and how.
        close: Closing,
        /// When connections are due.
        schedule: Option<LoadSchedule>,
        /// Flows.
        flows: u32,
    },
}

/// When the requests of all flows together are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSchedule {
    /// How many per second.
    pub per_s: f64,
    /// Whether they follow each other at random (a Poisson process) or evenly.
    pub poisson: bool,
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEnd {
    /// After so much time, in every flow.
    Time {
        /// The time, warm-up included.
        duration_ns: u64,
    },
    /// After so many bytes in each direction of a stream, shared by the flows.
    Bytes {
        /// The bytes.
        bytes: u64,
    },
    /// After so many sends in each direction (stream) or transactions (rr), shared by the flows.
    Count {
        /// The sends or transactions.
        count: u64,
    },
}

/// What one flow does at both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSteps {
    /// At the client.
    pub client: Vec<Step>,
    /// At the server.
    pub server: Vec<Step>,
}

impl Load {
    /// Number of flows, both directions together.
    pub fn flows(&self) -> u32 {
        match self.kind {
            LoadKind::Stream { up_flows, down_flows, .. } => up_flows.saturating_add(down_flows),
            LoadKind::Rr { flows, .. } | LoadKind::Connect { flows, .. } => flows,
        }
    }

    /// Whether the client sends the flow's bulk bytes (stream) or its requests (rr).
    pub fn client_sends(&self, flow: u32) -> bool {
        match self.kind {
            LoadKind::Stream { up_flows, .. } => flow < up_flows,
            LoadKind::Rr { .. } | LoadKind::Connect { .. } => true,
        }
    }

    fn framing(&self) -> Framing {
        if self.datagrams { Framing::DatagramHeader } else { Framing::None }
    }

    fn content(&self, flow: u32) -> Content {
        if self.verify {
            Content::Pattern { offset: u64::from(flow) * PATTERN_STRIDE }
        } else {
            Content::Filler
        }
    }

    /// How many flows go in a flow's direction, and which of them it is.
    fn place_of(&self, flow: u32) -> (u32, u32) {
        match self.kind {
            LoadKind::Stream { up_flows, .. } if flow < up_flows => (up_flows, flow),
            LoadKind::Stream { up_flows, down_flows, .. } => (down_flows, flow - up_flows),
            LoadKind::Rr { flows, .. } | LoadKind::Connect { flows, .. } => (flows, flow),
        }
    }

    /// The pace of one flow. Where a single send is more than a quarter of a burst, the flows of a direction begin
    /// one after the other, spread over the time from one send of a flow to its next: all at once they would send more
    /// than a burst. Faster ones together send a quarter of one, and take turns for no gain and more wake-ups.
    fn pace_of(&self, flow: u32, bps: u64, unit_bytes: u32) -> Pace {
        let least_bytes =
            if self.datagrams { unit_bytes } else { unit_bytes.min(LEAST_SEND_BYTES) };
        let least_ns = u128::from(least_bytes) * 8_000_000_000 / u128::from(bps.max(1));
        let between_ns = if least_ns > u128::from(BURST_NS / 4) { least_ns } else { 0 };
        let (flows, place) = self.place_of(flow);
        let first_ns = between_ns * u128::from(place) / u128::from(flows.max(1));
        let first_ns = u64::try_from(first_ns).unwrap_or(u64::MAX);
        Pace { bps, burst_ns: BURST_NS, least_bytes, first_ns }
    }

    /// The part of the end that falls to one flow.
    fn end_of(&self, flow: u32) -> StepEnd {
        let (flows, place) = self.place_of(flow);
        match self.end {
            LoadEnd::Time { duration_ns } => StepEnd::Time { duration_ns },
            LoadEnd::Count { count } => StepEnd::Count { count: share(count, flows, place) },
            LoadEnd::Bytes { bytes } => StepEnd::Bytes { bytes: share(bytes, flows, place) },
        }
    }
}

/// What flow number `flow` does at both ends. A number past the last flow has no steps.
///
/// The sender's (or the requester's) step has the end; the other's ends by its peer. Of a
/// connection, that same end closes first, gracefully, and the other after it. A UDP association
/// has nothing to close, and connections that come and go are closed as their step says.
pub fn steps(load: &Load, flow: u32) -> FlowSteps {
    if flow >= load.flows() {
        return FlowSteps { client: Vec::new(), server: Vec::new() };
    }
    let (mut leading, mut following) = match load.kind {
        LoadKind::Stream { .. } => stream(load, flow),
        LoadKind::Rr { .. } => rr(load, flow),
        LoadKind::Connect { .. } => connect(load, flow),
    };
    let stays = !matches!(load.kind, LoadKind::Connect { .. });
    if stays && !load.datagrams {
        leading.push(Step::Close(Close::Graceful));
        following.push(Step::Close(Close::AfterPeer));
    }
    if load.client_sends(flow) {
        FlowSteps { client: leading, server: following }
    } else {
        FlowSteps { client: following, server: leading }
    }
}

fn stream(load: &Load, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let LoadKind::Stream { unit_bytes, sent, received, .. } = load.kind else {
        return (Vec::new(), Vec::new());
    };
    let receive = Transfer {
        end: StepEnd::Peer,
        unit_bytes,
        pace: None,
        content: load.content(flow),
        framing: load.framing(),
        movement: received,
        yields: true,
    };
    let pace = load.pace_bps_per_flow.map(|bps| load.pace_of(flow, bps, unit_bytes));
    let send = Transfer { end: load.end_of(flow), pace, movement: sent, ..receive.clone() };
    (vec![Step::Send(send)], vec![Step::Receive(receive)])
}

fn rr(load: &Load, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let LoadKind::Rr { request_bytes, response_bytes, timeout_ns, outstanding, schedule, flows } =
        load.kind
    else {
        return (Vec::new(), Vec::new());
    };
    let answer = Exchange {
        end: StepEnd::Peer,
        request_bytes,
        response_bytes,
        outstanding,
        schedule: None,
        timeout_ns: None,
        content: load.content(flow),
        framing: load.framing(),
    };
    let exchange = Exchange {
        end: load.end_of(flow),
        schedule: schedule.map(|schedule| schedule_of(schedule, flows, flow)),
        timeout_ns: load.datagrams.then_some(timeout_ns),
        ..answer.clone()
    };
    (vec![Step::Exchange(exchange)], vec![Step::Answer(answer)])
}

fn connect(load: &Load, flow: u32) -> (Vec<Step>, Vec<Step>) {
    let LoadKind::Connect { request_bytes, response_bytes, timeout_ns, close, schedule, flows } =
        load.kind
    else {
        return (Vec::new(), Vec::new());
    };
    let accept = Connection {
        end: StepEnd::Peer,
        request_bytes,
        response_bytes,
        timeout_ns,
        close,
        schedule: None,
    };
    let connect = Connection {
        end: load.end_of(flow),
        schedule: schedule.map(|schedule| schedule_of(schedule, flows, flow)),
        ..accept.clone()
    };
    (vec![Step::Connect(connect)], vec![Step::Accept(accept)])
}

/// The part of the schedule that falls to one flow. Evenly, the flows take turns; at random, each
/// has its own random numbers, and their sum is again a Poisson process.
fn schedule_of(schedule: LoadSchedule, flows: u32, flow: u32) -> Schedule {
    let flows = f64::from(flows.max(1));
    Schedule {
        per_s: schedule.per_s / flows,
        arrivals: if schedule.poisson {
            Arrivals::Poisson { seed: u64::from(flow) }
        } else {
            Arrivals::Even
        },
        first_ns: (f64::from(flow) * 1e9 / schedule.per_s) as u64,
    }
}

/// The part of `total` that falls to one of `flows`: even, the remainder on the first ones.
fn share(total: u64, flows: u32, flow: u32) -> u64 {
    let flows = u64::from(flows.max(1));
    total / flows + u64::from(u64::from(flow) < total % flows)
}

#[cfg(test)]
mod tests;
