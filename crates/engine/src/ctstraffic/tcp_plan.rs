//! What a client or a server over TCP is to do.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::plan::ConnectTransfer;
use linerate_measure::plan::limits::TIMEOUT_NS;
use linerate_measure::step::{Churn, Life, Step, StepEnd};
use linerate_measure::{End, Kind, Role, Transport, Workload};

use super::sockets::Sockets;
use crate::connections::Route;
use crate::probe::processors;

/// What a client or a server over TCP is to do.
#[derive(Clone, Debug)]
pub struct TcpPlan {
    /// Which end it is.
    pub end: TcpEnd,
    /// What it does on each connection.
    pub life: Life,
    /// The same, as a native plan has it.
    pub transfer: ConnectTransfer,
    /// How its sockets are made.
    pub sockets: Sockets,
    /// Time between two rows of status.
    pub status_ns: u64,
    /// After so long everything ends; absent: never.
    pub time_limit: Option<Duration>,
    /// What stands is left open for so long at the end; absent: not at all.
    pub pause_at_end: Option<Duration>,
    /// A connection on which nothing moves for so long has failed; absent: never.
    pub idle_timeout: Option<Duration>,
    /// The processors that its threads run on; none: all.
    pub cpus: Vec<u32>,
    /// Whether the kernel is asked about each connection when it ends.
    pub asks_kernel: bool,
}

/// Which end, and how many connections.
#[derive(Clone, Debug)]
pub enum TcpEnd {
    /// It makes connections.
    Client {
        /// At the same time.
        connections: u32,
        /// How often as many; absent: without end.
        iterations: Option<u64>,
        /// How many of them may be on their way, or without an id; absent: any number.
        most_pending: Option<u32>,
        /// Where they go, and from where.
        routes: TcpRoutes,
    },
    /// It accepts connections.
    Server {
        /// Where.
        listen: Vec<SocketAddr>,
        /// It ends after so many; absent: never.
        limit: Option<u64>,
    },
}

/// Where connections go, and from where.
#[derive(Clone)]
pub struct TcpRoutes {
    /// The route of the connection with this number.
    pub find: Arc<dyn Fn(u64) -> Route + Send + Sync>,
    /// How many there are, all local ports counted.
    pub count: u64,
}

impl fmt::Debug for TcpRoutes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TcpRoutes").field("count", &self.count).finish_non_exhaustive()
    }
}

impl TcpPlan {
    pub(super) fn role(&self) -> Role {
        match self.end {
            TcpEnd::Client { .. } => Role::Client,
            TcpEnd::Server { .. } => Role::Server,
        }
    }

    /// The nearest native workload, as documents have it: what no option limits has the time limit, or an open end.
    pub fn workload(&self) -> Workload {
        let time_ns =
            self.time_limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let end = match self.count() {
            Some(count) => End::Count { count },
            None => End::Time { duration_ns: time_ns },
        };
        Workload { end, ..self.load() }
    }

    /// Connections in all; `None`: any number.
    fn count(&self) -> Option<u64> {
        match &self.end {
            TcpEnd::Client { connections, iterations, .. } => {
                iterations.map(|count| count.saturating_mul((*connections).into()))
            }
            TcpEnd::Server { limit, .. } => *limit,
        }
    }

    /// The load that carries it. It ends by number; the run's conductor knows the time limit.
    pub(super) fn load(&self) -> Workload {
        let threads = processors(&self.cpus);
        let (flows, most_threads) = match &self.end {
            // Each thread has a part of the connections that may be on their way.
            TcpEnd::Client { connections, most_pending, .. } => {
                (*connections, most_pending.unwrap_or(u32::MAX))
            }
            // At a server, a flow stands for all connections of a thread.
            TcpEnd::Server { .. } => (threads, u32::MAX),
        };
        let mut workload = Workload {
            end: End::Count { count: self.count().unwrap_or(u64::MAX) },
            flows,
            interval_ns: self.status_ns,
            ..Workload::connect(Transport::Tcp)
        };
        workload.threading.threads = Some(threads.min(most_threads).clamp(1, flows.max(1)));
        workload.payload.verify = self.life.verifies();
        if let Kind::Connect { transfer, timeout_ns, .. } = &mut workload.kind {
            *transfer = Some(self.transfer);
            *timeout_ns = self.timeout_ns().clamp(*TIMEOUT_NS.start(), *TIMEOUT_NS.end());
        }
        workload
    }

    fn timeout_ns(&self) -> u64 {
        let of = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.idle_timeout.map_or(u64::MAX, of)
    }

    /// What each of the workload's flows does, the same for all.
    pub(super) fn steps(&self) -> Vec<Vec<Step>> {
        let churn = |end| Churn {
            end,
            timeout_ns: self.timeout_ns(),
            schedule: None,
            life: self.life.clone(),
        };
        let step = match &self.end {
            TcpEnd::Client { iterations, .. } => {
                let count = iterations.unwrap_or(u64::MAX);
                Step::Connect(Box::new(churn(StepEnd::Count { count })))
            }
            TcpEnd::Server { .. } => Step::Accept(Box::new(churn(StepEnd::Peer))),
        };
        vec![vec![step]]
    }
}
