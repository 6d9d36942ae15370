//! One-way delay variation.

/// How long the least delay is looked for, ns: clocks that drift apart by 50 millionths differ by a
/// millisecond after the 20 s that two such times are.
const LEAST_NS: u64 = 10_000_000_000;

/// How much longer a datagram was on its way than the fastest one (RFC 5481, section 4.2: packet
/// delay variation). The fastest is that of the last 10 to 20 s up to the datagram itself, as the two
/// clocks may drift apart. They may differ by any constant.
#[derive(Clone, Copy, Debug, Default)]
pub struct DelayVariation {
    /// When the time that `least_ns` is of began, by the receiver's clock; 0: nothing has come.
    began_ns: u64,
    /// The least difference between the two clocks' times, modulo 2^64.
    least_ns: u64,
    /// The same of the time before.
    previous_least_ns: u64,
}

impl DelayVariation {
    /// A datagram that was sent at `sent_ns` by the sender's clock came at `received_ns` by this
    /// end's: how much longer it took than the fastest, ns.
    #[inline]
    pub fn record(&mut self, sent_ns: u64, received_ns: u64) -> u64 {
        let transit_ns = received_ns.wrapping_sub(sent_ns);
        if self.began_ns == 0 || received_ns.saturating_sub(self.began_ns) >= LEAST_NS {
            self.begin(transit_ns, received_ns);
        }
        if is_less(transit_ns, self.least_ns) {
            self.least_ns = transit_ns;
        }
        let is_later = is_less(self.least_ns, self.previous_least_ns);
        let least_ns = if is_later { self.least_ns } else { self.previous_least_ns };
        transit_ns.wrapping_sub(least_ns).min(i64::MAX as u64)
    }

    #[cold]
    fn begin(&mut self, transit_ns: u64, received_ns: u64) {
        let is_first = self.began_ns == 0;
        self.previous_least_ns = if is_first { transit_ns } else { self.least_ns };
        self.least_ns = transit_ns;
        self.began_ns = received_ns.max(1);
    }
}

/// Whether a difference of clocks is less than another, which may have gone through zero.
#[inline]
fn is_less(a_ns: u64, b_ns: u64) -> bool {
    (a_ns.wrapping_sub(b_ns) as i64) < 0
}
