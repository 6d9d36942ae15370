//! QUIC (RFC 9000): `quinn-proto`'s state machines, driven by the shard that owns them.
//!
//! Only this room names the crate. An [`Endpoint`] is one UDP socket and all connections over it;
//! it belongs to one thread, which gives it turns: packets in, timers, packets out, never more of
//! either than leaves others their part. What happens comes out as [`Event`]s. The bytes of a
//! stream are sent and received by its [`Link`], or through a [`QuicStream`], which any
//! flow can be carried by.

mod cause;
mod clear;
mod coalesced;
mod connection;
mod counted;
mod datagrams;
mod delivery;
mod endpoint;
mod governor;
mod hello;
mod hystart;
mod ids;
mod keys;
mod lent;
mod multiplexed;
mod packets;
mod qlog;
mod separate;
mod session;
mod settings;
mod stock;
mod stream;

pub(crate) use cause::{Cause, peer_code};
pub(crate) use connection::{SharedConnection, StreamAbort};
pub(crate) use datagrams::{Arrivals, QuicDatagrams};
pub(crate) use endpoint::{Blueprint, Endpoint, Event, Link};
pub use ids::{ConnectionIds, Mark};
pub(crate) use multiplexed::MultiplexedEndpoint;
pub(crate) use quinn_proto::{Dir, Side, StreamId};
pub(crate) use separate::SeparateEndpoints;
pub(crate) use session::Extras;
pub(crate) use settings::{
    Acknowledging, ClientSide, Congestion, LEAST_PAYLOAD_BYTES, MOST_JUMBO_CONNECTIONS, ServerSide,
    Settings,
};
pub(crate) use stock::Stock;
pub(crate) use stream::{Facts, QuicStream, Way, shared_pattern};

#[cfg(test)]
mod tests;
