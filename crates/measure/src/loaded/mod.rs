//! Latency under load: how long requests and new connections take while a path is idle, and while bulk transfers fill
//! it in one direction, in the other, and in both.
//!
//! A measurement goes through phases ([`PhaseName`]). In each, tests run beside each other ([`Part`]): the load, and
//! probes that begin when they are due, whatever the answers do. What the parts' runs counted becomes a [`Phase`], and
//! all phases the document [`Loaded`].
//!
//! * **sparse**: requests over connections of their own that carry nothing else. **udp**: likewise over UDP.
//! * **foreign**: new connections: TCP alone, with TLS, and up to the first byte of a response.
//! * **self**: the round trip that the load's own connections see: the smoothed one that their senders keep
//!   (RFC 6298, section 2; RFC 9002, section 5.3), interval by interval.

mod document;
mod phase;
mod rpm;
mod watch;
mod workloads;

#[cfg(test)]
mod tests;

pub use document::{Loaded, LoadedStatus, PhaseReason};
pub use phase::{Ended, Foreign, PartRun, Phase, StandingQueue};
pub use rpm::{Rpm, RpmInput, trimmed_mean_ns};
pub use watch::{Confidence, LoadSteadiness, Watch};
pub use workloads::{INTERVAL_NS, LoadedPlan, PROBES_PER_S, Part, PhaseName};
