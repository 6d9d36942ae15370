//! When the sends of a connection are due: at once, at a rate, or in bursts.

/// How a connection's sends are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaceSettings {
    /// As fast as the connection takes them.
    #[default]
    None,
    /// Up to a number of bytes in each period.
    Rate {
        /// Bytes per second, on average.
        bytes_per_s: u64,
        /// The period, ms; at least 1.
        period_ms: u64,
    },
    /// A number of sends, then a pause.
    Burst {
        /// Sends from one pause to the next, at least 1.
        count: u32,
        /// The pause, ms.
        delay_ms: u32,
    },
}

/// The spacing of one connection's sends.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// No spacing.
    None,
    /// A rate.
    Rate(RateLimiter),
    /// Bursts.
    Burst(Burst),
}

impl Pace {
    /// The spacing of a connection that begins now.
    pub fn new(settings: PaceSettings, now_ns: u64) -> Self {
        match settings {
            PaceSettings::None => Self::None,
            PaceSettings::Rate { bytes_per_s, period_ms } => {
                Self::Rate(RateLimiter::new(bytes_per_s, period_ms, now_ns))
            }
            PaceSettings::Burst { count, delay_ms } => Self::Burst(Burst::new(count, delay_ms)),
        }
    }

    /// When the next send is due, of so many bytes; it counts as sent.
    pub fn due_ns(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let delay_ns = match self {
            Self::None => 0,
            Self::Rate(limiter) => limiter.delay_ns(bytes, now_ns),
            Self::Burst(burst) => burst.delay_ns(),
        };
        now_ns.saturating_add(delay_ns)
    }
}

/// Bytes that may be sent in one period, for a rate in bytes per second: 0 where that is less than one.
pub fn quantum_bytes(bytes_per_s: u64, period_ms: u64) -> u64 {
    let bytes = u128::from(bytes_per_s) * u128::from(period_ms) / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A limit on what is sent in each period. A send that is longer than a period's share is sent whole,
/// and uses up the periods that follow. The first period's share is not delayed, so that a whole
/// connection is a little faster than its limit.
#[derive(Clone, Copy, Debug)]
pub struct RateLimiter {
    quantum_bytes: u64,
    period_ns: u64,
    /// Bytes sent in the period, more than the quantum where it was exceeded.
    used_bytes: u64,
    /// When the period began.
    begun_ns: u64,
}

impl RateLimiter {
    /// A limit from now on.
    pub fn new(bytes_per_s: u64, period_ms: u64, now_ns: u64) -> Self {
        Self {
            quantum_bytes: quantum_bytes(bytes_per_s, period_ms).max(1),
            period_ns: period_ms.max(1).saturating_mul(1_000_000),
            used_bytes: 0,
            begun_ns: now_ns,
        }
    }

    /// How long to wait before a send of so many bytes, which counts as sent.
    pub fn delay_ns(&mut self, bytes: u64, now_ns: u64) -> u64 {
        let Self { quantum_bytes, period_ns, .. } = *self;
        if self.used_bytes < quantum_bytes {
            self.used_bytes = self.used_bytes.saturating_add(bytes);
            if now_ns > self.begun_ns.saturating_add(period_ns) {
                let periods = (now_ns - self.begun_ns) / period_ns;
                self.begun_ns += periods * period_ns;
                let allowed = periods.saturating_mul(quantum_bytes);
                self.used_bytes = self.used_bytes.saturating_sub(allowed);
            }
            return 0;
        }
        let periods = self.used_bytes / quantum_bytes;
        self.used_bytes = (self.used_bytes % quantum_bytes).saturating_add(bytes);
        let rest_ns = self.begun_ns.saturating_add(period_ns).saturating_sub(now_ns);
        let more_ns = (periods - 1).saturating_mul(period_ns);
        self.begun_ns = self.begun_ns.saturating_add(periods.saturating_mul(period_ns));
        rest_ns.saturating_add(more_ns)
    }
}

/// Sends in groups: the last one of each count waits, and begins the next group.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    count: u32,
    delay_ns: u64,
    left: u32,
}

impl Burst {
    /// Bursts of so many sends, and the pause between them.
    pub fn new(count: u32, delay_ms: u32) -> Self {
        let count = count.max(1);
        Self { count, delay_ns: u64::from(delay_ms) * 1_000_000, left: count }
    }

    /// How long to wait before the next send, which counts as sent.
    pub fn delay_ns(&mut self) -> u64 {
        self.left -= 1;
        if self.left > 0 {
            return 0;
        }
        self.left = self.count;
        self.delay_ns
    }
}

#[cfg(test)]
mod tests;
