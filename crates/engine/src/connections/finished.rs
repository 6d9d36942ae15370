//! What is told of each connection that came to its end, where somebody asks for it.

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_measure::step::{Difference, ID_BYTES, LifeFault};

use super::living::Living;

/// A connection that came to its end, for better or worse.
#[derive(Clone, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "no dialect asks for records yet"))]
pub(crate) struct Finished {
    /// This end's address and the other's, where the connection stood.
    pub(crate) addresses: Option<(SocketAddr, SocketAddr)>,
    /// The text that was sent or received last.
    pub(crate) text: [u8; ID_BYTES],
    /// Payload.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
    /// When its life began, and when its last transfer was over; 0: never. On the monotonic clock.
    pub(crate) began_ns: u64,
    pub(crate) transferred_ns: u64,
    /// The kind of its failure, where it failed.
    pub(crate) failure: Option<&'static str>,
    /// Where what came differs from what should have come.
    pub(crate) difference: Option<Difference>,
}

/// Takes note of connections that came to their end, in the thread that had them.
pub(crate) type TellFinished = Arc<dyn Fn(&Finished) + Send + Sync>;

impl Finished {
    /// One whose life has come so far; `None`: it had not begun.
    pub(super) fn new(living: Option<&Living>, error: Option<&std::io::Error>) -> Self {
        let (sent_bytes, received_bytes) = living.map_or((0, 0), Living::moved);
        let difference = match error.and_then(|error| error.get_ref()?.downcast_ref()) {
            Some(LifeFault::Corrupt(difference)) => Some(*difference),
            _ => None,
        };
        Self {
            addresses: living.and_then(|living| living.addresses),
            text: living.map_or([0; ID_BYTES], Living::text),
            sent_bytes,
            received_bytes,
            began_ns: living.map_or(0, |living| living.began_ns),
            transferred_ns: living.map_or(0, |living| living.transferred_ns),
            failure: error.map(crate::flow::error_kind),
            difference,
        }
    }
}
