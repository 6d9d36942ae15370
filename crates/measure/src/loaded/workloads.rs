//! The phases of a measurement, and the workloads of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{
    Arrivals, Direction, End, Kind, Schedule, SocketOptions, Threading, Transport, Workload,
};

/// The length of a sample.
pub const INTERVAL_NS: u64 = 100_000_000;
/// A request over UDP without a response is given up after so long: queues of a second are known.
const UDP_TIMEOUT_NS: u64 = 3_000_000_000;
/// New connections that may be under way at once: as many as come in a second and more, where each takes that long.
const CONNECTIONS_AT_ONCE: u32 = 32;
/// The probes of all kinds in a second.
pub const PROBES_PER_S: f64 = SPARSE_PER_S + UDP_PER_S + 2.0 * CONNECTIONS_PER_S;
/// Requests over connections of their own. In 10 s they are enough for a 99th percentile.
const SPARSE_PER_S: f64 = 40.0;
/// The connections that they take turns on. A kernel holds a small segment back while the one before is still in this
/// machine's own queue (tcp_autocorking), so each connection has a request every 400 ms only.
const SPARSE_CONNECTIONS: u32 = 16;
const UDP_PER_S: f64 = 20.0;
/// New connections over TCP, and as many over TLS.
const CONNECTIONS_PER_S: f64 = 20.0;

/// What fills the path in a phase.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PhaseName {
    /// Nothing.
    Idle,
    /// Bulk transfers to the server.
    Up,
    /// Bulk transfers from the server.
    Down,
    /// Both at once.
    Both,
}

impl PhaseName {
    /// All, in their order.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Up, Self::Down, Self::Both];

    /// The name in documents and texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }

    /// Which way the load goes; `None`: there is none.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Idle => None,
            Self::Up => Some(Direction::Up),
            Self::Down => Some(Direction::Down),
            Self::Both => Some(Direction::Both),
        }
    }
}

/// One of the tests of a phase, which run beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The bulk transfers.
    Load,
    /// Requests over connections of their own.
    Sparse,
    /// Requests over UDP.
    Udp,
    /// New connections over TCP.
    Tcp,
    /// New connections over TLS 1.3.
    Tls,
}

impl Part {
    /// The tests of a phase, in the order in which they are opened.
    pub fn of(phase: PhaseName) -> Vec<Self> {
        let load = phase.direction().map(|_| Self::Load);
        load.into_iter().chain([Self::Sparse, Self::Udp, Self::Tcp, Self::Tls]).collect()
    }

    /// What sentences call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Sparse => "requests",
            Self::Udp => "requests over UDP",
            Self::Tcp => "new TCP connections",
            Self::Tls => "new TLS connections",
        }
    }
}

/// What a measurement is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedPlan {
    /// What carries the load, and the requests over connections of their own: TCP, TLS or QUIC.
    pub transport: Transport,
    /// Flows of the load in each direction.
    pub flows: u32,
    /// The load's congestion control, at both ends.
    pub congestion: String,
    /// How long the idle phase is measured.
    pub idle_ns: u64,
    /// How long each other phase is measured at most.
    pub longest_ns: u64,
    /// How long a load runs before it is measured: its rate rises and the queue fills meanwhile.
    pub warm_up_ns: u64,
}

impl LoadedPlan {
    /// The workload of a part of a phase. The idle phase has no load: what stands for it there is never run.
    pub fn workload(&self, phase: PhaseName, part: Part) -> Workload {
        let mut workload = match part {
            Part::Load => self.load(phase),
            Part::Sparse => {
                let workload = Workload::rr(self.transport);
                requests(Workload { flows: SPARSE_CONNECTIONS, ..workload }, SPARSE_PER_S)
            }
            Part::Udp => requests(Workload::rr(Transport::Udp), UDP_PER_S),
            Part::Tcp => connections(Transport::Tcp),
            Part::Tls => connections(Transport::Tls),
        };
        (workload.end, workload.omit_ns) = match phase {
            PhaseName::Idle => (End::Time { duration_ns: self.idle_ns }, 0),
            _ => (End::Time { duration_ns: self.longest_ns }, self.warm_up_ns),
        };
        workload.interval_ns = INTERVAL_NS;
        workload
    }

    fn load(&self, phase: PhaseName) -> Workload {
        let direction = phase.direction().unwrap_or(Direction::Up);
        let congestion = Some(self.congestion.clone());
        Workload {
            flows: self.flows,
            socket: SocketOptions { congestion, ..SocketOptions::default() },
            ..Workload::stream(direction, self.transport)
        }
    }
}

fn requests(mut workload: Workload, per_s: f64) -> Workload {
    if let Kind::Rr { schedule, timeout_ns, .. } = &mut workload.kind {
        *schedule = Some(Schedule { per_s, arrivals: Arrivals::Even });
        *timeout_ns = UDP_TIMEOUT_NS;
    }
    on_one_thread(workload)
}

fn connections(transport: Transport) -> Workload {
    let mut workload = Workload { flows: CONNECTIONS_AT_ONCE, ..Workload::connect(transport) };
    if let Kind::Connect { schedule, .. } = &mut workload.kind {
        *schedule = Some(Schedule { per_s: CONNECTIONS_PER_S, arrivals: Arrivals::Even });
    }
    on_one_thread(workload)
}

/// Probes are few: more threads would only take processors from the load.
fn on_one_thread(workload: Workload) -> Workload {
    Workload { threading: Threading { threads: Some(1), ..Threading::default() }, ..workload }
}
