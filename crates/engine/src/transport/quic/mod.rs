//! QUIC (RFC 9000): `quinn-proto`'s state machines, driven by the shard that owns them.
//!
//! Only this room names the crate. An [`Endpoint`] is UDP sockets and all connections over them: one
//! socket for all, several, or one for each connection. It belongs to one thread, which gives it
//! turns: packets in, timers, packets out, never more of either than leaves others their part. What
//! happens comes out as [`Event`]s. The bytes of a stream are sent and read where its connection is,
//! or through a [`QuicStream`], which any flow can be carried by. What nobody reads, the peer may not
//! follow with more than the window: a reader that pauses holds its sender.

mod cause;
mod clear;
mod coalesced;
mod connection;
mod counted;
mod datagrams;
mod delivery;
mod endpoint;
mod events;
mod first_flight;
mod frames;
mod governor;
mod hello;
mod hystart;
mod ids;
mod keys;
mod lent;
mod multiplexed;
mod older_acks;
mod packets;
mod qlog;
mod session;
mod settings;
mod shared_port;
mod stock;
mod stream;

#[cfg(test)]
pub(crate) use cause::PeerClose;
pub(crate) use cause::{Cause, peer_code};
pub(crate) use connection::{Connection, SharedConnection, StreamAbort, StreamRead};
pub(crate) use datagrams::{Arrivals, QuicDatagrams};
pub(crate) use endpoint::{Endpoint, Event, Link};
pub(crate) use events::EventLog;
pub use ids::{ConnectionIds, Mark};
pub(crate) use multiplexed::MultiplexedEndpoint;
pub(crate) use quinn_proto::{Dir, Side, StreamId};
pub(crate) use session::Extras;
pub use settings::Congestion;
pub(crate) use settings::{
    Acknowledging, ClientSide, LEAST_PAYLOAD_BYTES, MOST_JUMBO_CONNECTIONS, ServerSide, Settings,
    Versions,
};
pub(crate) use shared_port::{bind_shared, share_packets_of};
pub(crate) use stock::Stock;
pub(crate) use stream::{Facts, QuicStream, Way, shared_pattern};

/// The stream of this number, where streams have such numbers (RFC 9000, section 2.1).
pub(crate) fn stream_id(number: u64) -> Option<StreamId> {
    quinn_proto::VarInt::from_u64(number).ok().map(StreamId::from)
}

#[cfg(test)]
mod tests;
