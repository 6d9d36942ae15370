//! What else shows that the client is there, or may be, while it says nothing.

use super::{Now, Server, Stage};

impl Server {
    /// The client's bytes arrive on a flow of the load. A queue that flows and messages share may hold the messages.
    pub fn handle_life(&mut self, now: Now) {
        if matches!(self.stage, Stage::Running) {
            self.now = now;
            self.silence.record_heard(now.monotonic_ns);
        }
    }

    /// The connection's round-trip time, as its transport knows it: silence may last two of them longer.
    pub fn handle_round_trip(&mut self, rtt_ns: u64) {
        self.silence.record_round_trip(rtt_ns);
    }

    /// The transport sends again what the other end's machine has not acknowledged: this silence may last two
    /// seconds longer. To be told several times a second, as it may be over before the other end is heard.
    pub fn handle_dark_path(&mut self) {
        self.silence.record_dark();
    }
}
