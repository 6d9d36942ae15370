//! Makes traffic on this machine and measures it.
//!
//! [`run`] is a measurement's client, [`Server`] the end that is measured against. Both turn a
//! [`measure::Plan`](linerate_measure::Plan) into flows, spread the flows over *shards* and count
//! what happens. A shard is one thread with its own flows, buffers, counters and histogram: nothing
//! is shared with another between the start gate and the end, and a counter is published with a
//! plain store that any thread may read. The control conversation, the samples and the clock of
//! the load belong to the one thread that called [`run`], or to the server's first thread.
//!
//! It may not know: the caller, where results go, how they are printed. Results leave as [`Event`]s
//! through a [`Sink`] that drops and counts rather than block.
//!
//! Sockets, clocks and probes are `linerate-system`'s, and so is all `unsafe`; the emulator of paths is
//! `linerate-link`.

#![forbid(unsafe_code)]

mod acceptor;
pub mod access;
mod buffers;
mod client;
mod clock;
mod connections;
mod control;
pub mod ctstraffic;
pub mod event;
mod flow;

pub mod iperf3;
mod latencies;
mod load;
pub mod netperf;
mod pacing;
mod page_aligned;
mod pattern;
pub mod perf;
mod phase;
pub mod qperf;
mod quic_load;
mod ready_count;
pub mod relay;
mod server;
mod shard;
mod tally;
mod timetable;
mod transport;
mod waiting;

pub use client::{LaterStart, Lease, LeaseToken, random_run_id, run, run_when_told, run_within};
pub use control::{certificate_fault, check_identity, make_identity};
pub use load::client_threads;
pub use server::{ServeOptions, Server, ServerGauge, ServerStatus};

pub use linerate_system::affinity::pin_to;
pub use linerate_system::congestion::check_congestion;
pub use linerate_system::error;
pub use linerate_system::probe::collected::readers as counter_readers;
pub use linerate_system::probe::{cpus_near, host_facts};
pub use linerate_system::resolve::{resolve as resolve_host, unknown_host};
pub use linerate_system::socket::{HandedSockets, inherited_file, stdout_was_closed};

// Rooms of the system, named as if they stood here.
use linerate_system::{poll, probe, resolve, socket, waker};
