//! QUIC on both sides: a client's streams and datagrams go on over a connection to the target.

mod early;
mod pair;
mod sides;
mod worker;

pub(super) use sides::bind;
pub(super) use worker::Worker;
