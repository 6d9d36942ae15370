//! The ctsTraffic dialect over sockets: clients and servers of transfers over TCP, and of media streams over UDP.
//!
//! Nothing is negotiated, so there is no conversation. Each TCP connection lives the life that the options come to
//! ([`Life`](linerate_measure::step::Life)), in the loops that all connections that come and go have; here they are
//! counted by what came of them. The machines of streams are `linerate_wire::ctstraffic::media`'s; here they get
//! sockets, clocks and threads. One thread has all streams of an end. Events go to the caller's thread, so that a
//! slow reader delays neither data nor frames. `docs/compat/ctstraffic.md` says what is like the original and what
//! isn't.

mod media_client;
mod media_event;
mod media_events;
mod media_plan;
mod media_run;
mod media_server;
mod sockets;
mod tcp_event;
mod tcp_notices;
mod tcp_plan;
mod tcp_run;

pub use crate::connections::{Call, Route};
pub use media_client::run_media_client;
pub use media_event::{MediaError, MediaEvent, MediaRun, MediaStatus, MediaStreamEnd, MediaTotals};
pub use media_plan::{MediaClientPlan, MediaRoute, MediaServerPlan};
pub use media_run::MediaTimes;
pub use media_server::run_media_server;
pub use sockets::Sockets;
pub use tcp_event::{TcpConnectionEnd, TcpEvent, TcpKernelFigures, TcpStatus, TcpTotals};
pub use tcp_plan::{TcpEnd, TcpPlan, TcpRoutes};
pub use tcp_run::{TcpRun, run_tcp};

use std::time::Duration;

use crate::clock::MILLISECOND_NS;

/// The longest that an end sleeps: it checks this often whether it is cancelled, and what its connections tell.
const LOOK_NS: u64 = 20 * MILLISECOND_NS;
/// Events that may wait for the caller, whose output may be stopped while peers decide how many there are. Further
/// ones are only counted.
const MOST_WAITING: usize = 16_384;
/// How often the local ports are tried again when each was in use, and how long after.
const PORT_RETRIES: (u32, Duration) = (5, Duration::from_secs(1));
/// For so long the caller is told events that wait when a run is stopped. Further ones are only counted.
const LAST_LINES_NS: u64 = 500 * MILLISECOND_NS;

#[cfg(test)]
mod tests;
