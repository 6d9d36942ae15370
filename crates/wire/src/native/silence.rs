//! How long the other end may say nothing.

use crate::machine::Sign;

/// The longest round trip that is allowed for: a slow path's queue holds no message for longer.
const RTT_LIMIT_NS: u64 = 5_000_000_000;

/// So much longer may a silence last during which the other end's machine acknowledges nothing: then the path may be
/// dark for a moment.
pub(super) const DARK_NS: u64 = 2_000_000_000;

/// When a message of the other end last came, and how far away that end is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    heard_ns: u64,
    rtt_ns: u64,
    /// Whether the path was dark at a time since then.
    was_dark: bool,
}

impl Silence {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { heard_ns: now_ns, rtt_ns: 0, was_dark: false }
    }

    /// A message of the other end came.
    pub(super) fn record_heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.was_dark = false;
    }

    /// Something shows that it is there, or may be.
    pub(super) fn record(&mut self, now_ns: u64, sign: Sign) {
        match sign {
            Sign::Life => self.record_heard(now_ns),
            Sign::RoundTrip(rtt_ns) => self.rtt_ns = rtt_ns.min(RTT_LIMIT_NS),
            Sign::DarkPath => self.was_dark = true,
        }
    }

    /// When a silence of `least_ns` and two round trips is over, and how long that is: the queue of a slow
    /// path can hold a message, and what is sent again for it, for so long. On a dark path it may last longer.
    pub(super) fn deadline(&self, least_ns: u64) -> (u64, u64) {
        let dark_ns = if self.was_dark { DARK_NS } else { 0 };
        let after_ns = least_ns.saturating_add(2 * self.rtt_ns + dark_ns);
        (self.heard_ns.saturating_add(after_ns), after_ns)
    }
}

#[test]
fn a_silence_lasts_two_round_trips_longer_and_two_seconds_on_a_dark_path() {
    let mut silence = Silence::new(1_000);
    assert_eq!(silence.deadline(4_000_000_000), (4_000_001_000, 4_000_000_000));
    silence.record(1_500, Sign::RoundTrip(500_000_000));
    silence.record(1_500, Sign::DarkPath);
    assert_eq!(silence.deadline(4_000_000_000), (7_000_001_000, 7_000_000_000));
    silence.record_heard(2_000);
    assert_eq!(silence.deadline(4_000_000_000), (5_000_002_000, 5_000_000_000));
}
