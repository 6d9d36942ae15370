//! Streams in sealed frames over TCP: what the perf dialect speaks where there is no QUIC.
//!
//! TLS 1.3 is only the handshake, as in QUIC: its messages go in frames and not in records, and the keys
//! of the frames come from its traffic secrets. All frames of a direction are sealed with the same
//! nonce: that is the dialect, and why it is for measurements only. The framing is
//! [`linerate_wire::perf::frame`]'s; docs/compat/secnetperf.md writes it down.
//!
//! [`session`] is one connection without its socket, [`endpoint`] the sockets of one thread.

mod connection;
mod endpoint;
mod keys;
mod look;
mod outbox;
mod session;

pub(crate) use endpoint::FramedEndpoint;

#[cfg(test)]
mod tests;
