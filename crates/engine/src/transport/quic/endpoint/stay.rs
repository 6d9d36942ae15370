//! How long the socket of a connection that alone has it stays when the connection has ended.

use std::time::{Duration, Instant};

/// How long the last words may take to leave.
pub(in super::super) const LAST_WORDS: Duration = Duration::from_millis(200);
/// Then a socket stays until nothing has come for so long: where a port is closed while a server still
/// sends, some servers end.
pub(in super::super) const QUIET: Duration = Duration::from_millis(20);
/// How long it may take until the last words have left: thousands of connections that end at once have them one
/// after the other.
pub(in super::super) const UNSAID_LIMIT: Duration = Duration::from_secs(2);
/// How late a socket may close where nothing else happens, so that many close in one turn.
pub(super) const LATE: Duration = Duration::from_millis(10);

/// How long the socket of a connection that has ended stays.
///
/// It would have to stay for three probe timeouts if it were others' too. Where nothing that comes late can be
/// answered, as after the socket is closed, that may end early (RFC 9000, section 10.2): here when the peer has
/// closed in its turn, or has sent nothing for a moment.
#[derive(Clone, Copy)]
pub(super) struct Stay {
    /// Unless something comes before.
    pub(super) until: Instant,
    at_latest: Instant,
    /// Whether the last words have left.
    is_said: bool,
}

impl Stay {
    pub(super) fn new(now: Instant) -> Self {
        Self { until: now + QUIET, at_latest: now + UNSAID_LIMIT, is_said: false }
    }

    /// That of a socket which is of no use any more.
    pub(super) fn none(now: Instant) -> Self {
        Self { until: now, at_latest: now, is_said: true }
    }

    /// The last words have left; the time for an answer begins with the first report of that.
    pub(super) fn record_said(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_said, true) {
            (self.until, self.at_latest) = (now + QUIET, now + LAST_WORDS);
        }
    }

    /// The peer still sends.
    pub(super) fn record_heard(&mut self, now: Instant) {
        self.until = self.at_latest.min(now + QUIET);
    }

    pub(super) fn is_over(&self, has_unsaid: bool, now: Instant) -> bool {
        self.at_latest <= now || self.until <= now && !has_unsaid
    }
}
