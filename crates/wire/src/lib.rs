//! The languages that linerate speaks, as state machines.
//!
//! A *dialect* is a pair of pure state machines, one for the client and one for the server. Bytes
//! come in as slices, time comes in as an argument (nanoseconds on any monotonic clock), and what
//! to do next comes out as values. No dialect opens a socket, so each is tested in memory: client
//! against server, cut at every byte, under a virtual clock, fuzzed without a network. Those that hold a
//! control conversation are [`Machine`]s.
//!
//! [`native`] is linerate's own dialect, [`iperf3`], [`netperf`], [`perf`], [`ctstraffic`] and [`qperf`] are
//! those of other tools. Each has a `Client` and a `Server` (`perf` has one view of a stream for both ends,
//! `ctstraffic` one of a connection, `qperf` a client's), messages that encode and decode themselves, and the
//! codec of its datagrams. [`relay`] has the rules of a proxy between two QUIC connections. [`visible`] says
//! which characters of a peer's text may be shown.
//!
//! Bulk bytes never pass through a machine.
//!
//! The crate may not know: sockets, TLS, threads, async, or what a workload means. It gets plain
//! parameters; plans and results cross it as opaque documents whose size it limits.

#![forbid(unsafe_code)]

pub mod ctstraffic;
pub mod iperf3;
mod machine;
pub mod native;
pub mod netperf;
pub mod perf;
pub mod qperf;
pub mod relay;
pub mod visible;

pub use machine::{Machine, Now, Sign};
