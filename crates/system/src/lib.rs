//! What this machine offers to a measurement: sockets, clocks, wake-ups, and figures about itself.
//!
//! The crate stands below all that makes traffic:
//!
//! * [`socket`] opens sockets, sets their options, moves batches of packets and reads the kernel's counters.
//! * [`clock`] has the two clocks.
//! * [`poll`] waits for descriptors until a time, and [`waker`] ends such a wait.
//! * [`probe`] reads `/proc`, `/sys` and the limits of the process.
//! * [`affinity`] pins a thread to a processor.
//! * [`congestion`] tells which congestion controls of TCP this process may use.
//! * [`resolve`](mod@resolve) finds the addresses of a host.
//! * [`error::Error`] says whose fault a failure is.
//! * [`cancel::Cancel`] carries the wish to stop.
//!
//! The system calls that no safe library offers are here, and so is all `unsafe` of the workspace,
//! in `socket` alone: every other crate forbids it to the compiler. A function of this crate does one
//! thing to one descriptor or asks one question; how calls follow each other is the caller's.
//!
//! It may not know loads, flows, dialects, TLS or QUIC, and no language of the wire.

pub mod affinity;
pub mod cancel;
pub mod clock;
pub mod congestion;
pub mod error;
pub mod poll;
pub mod probe;
pub mod resolve;
pub mod socket;
pub mod waker;
