//! Media streams: a server sends frames at an even rate, each in one or more datagrams, and a client
//! renders them after a delay, complete or not.
//!
//! [`shape`] is what both ends compute from their options. [`datagram`] is the codec. [`sender`] is
//! the server's end of one stream, [`receiver`] the client's, and [`jitter`] what the client finds out
//! about the times between frames. There is no resend and no end of a stream on the wire.

pub mod datagram;
pub mod jitter;
pub mod receiver;
pub mod sender;
pub mod shape;
