//! TLS 1.3 over TCP.
//!
//! For connections that come and go, a [`session`] leaves everything to rustls: few bytes, much
//! handshake, tickets and early data. For a flow, which stays and carries many bytes, rustls comes to a
//! [`negotiation`] with the peer and gives out its keys; from then on the [`stream`]'s bytes go straight
//! between the load's memory, its buffers and the socket: [`records`] are sealed on their way into the
//! buffer that is sent, and opened where they were received.

mod buffers;
mod keys;
mod negotiation;
mod records;
mod session;
mod stream;

pub(crate) use negotiation::Negotiation;
pub(crate) use session::Tls;
pub(crate) use stream::TlsStream;

#[cfg(test)]
mod tests;
