//! A place among connections, and the endpoint that has it.

use std::time::{Duration, Instant};

use super::super::multiplexed::{LAST_WORDS, MultiplexedEndpoint, QUIET};
use crate::transport::multiplexer::Link;

/// How long it may take until the last words have left: thousands of connections that end at once have them one
/// after the other.
pub(super) const UNSAID_LIMIT: Duration = Duration::from_secs(2);

/// A place among connections.
#[derive(Default)]
pub(super) struct Place {
    pub(super) generation: u32,
    /// The endpoint, and its only connection as it knows it.
    pub(super) endpoint: Option<(MultiplexedEndpoint, Link)>,
    /// Whether it stands among those that are to be served.
    pub(super) is_queued: bool,
    /// When its timers are looked at; `None`: it has none.
    pub(super) due: Option<Instant>,
    /// Whether the poll set tells when its socket has room.
    pub(super) awaits_room: bool,
    /// Whether the connection has ended, and how long the socket stays.
    pub(super) stay: Option<Stay>,
}

impl Place {
    /// The same, free for another connection.
    pub(super) fn vacated(&self) -> Self {
        let generation = self.generation.wrapping_add(1);
        Self { generation, is_queued: self.is_queued, ..Self::default() }
    }

    /// Whether its socket has nothing more to do.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.stay.zip(self.endpoint.as_ref()).is_some_and(|(stay, (endpoint, _))| {
            endpoint.is_over()
                || stay.at_latest <= now
                || stay.until <= now && !endpoint.has_unsaid()
        })
    }

    /// Whether its socket may be closed where sockets are rare: all has been said.
    pub(super) fn may_leave(&self) -> bool {
        let endpoint = self.endpoint.as_ref().filter(|_| self.stay.is_some());
        endpoint.is_some_and(|(endpoint, _)| !endpoint.has_unsaid())
    }
}

/// How long the socket of a connection that has ended stays.
///
/// It would have to stay for three probe timeouts if it were others' too. Where nothing that comes late can be
/// answered, as after the socket is closed, that may end early (RFC 9000, section 10.2): here when the peer has
/// closed in its turn, or has sent nothing for a moment.
#[derive(Clone, Copy)]
pub(super) struct Stay {
    /// Unless something comes before.
    until: Instant,
    at_latest: Instant,
    /// Whether the last words have left.
    is_said: bool,
}

impl Stay {
    pub(super) fn new(now: Instant) -> Self {
        Self { until: now + QUIET, at_latest: now + UNSAID_LIMIT, is_said: false }
    }

    /// The last words have left; the time for an answer begins with the first report of that.
    pub(super) fn record_said(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_said, true) {
            (self.until, self.at_latest) = (now + QUIET, now + LAST_WORDS);
        }
    }

    /// That of a socket which is of no use any more.
    pub(super) fn none(now: Instant) -> Self {
        Self { until: now, at_latest: now, is_said: true }
    }

    /// The peer still sends.
    pub(super) fn record_heard(&mut self, now: Instant) {
        self.until = self.at_latest.min(now + QUIET);
    }

    /// When it is over if nothing comes.
    pub(super) fn ends(&self) -> Instant {
        self.until
    }
}
