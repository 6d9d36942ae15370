//! What a client finds out about the times between frames.

/// The counters of both ends for one frame: those of its datagram that was read last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The sender's counter, ticks.
    pub sender_counter: i64,
    /// Its ticks per second.
    pub sender_frequency: i64,
    /// The receiver's counter, ticks.
    pub receiver_counter: i64,
    /// Its ticks per second.
    pub receiver_frequency: i64,
}

/// A counter as a time, ms. A peer may claim a frequency of 0 or less, which makes no time.
fn milliseconds(counter: i64, frequency: i64) -> f64 {
    if frequency > 0 { counter as f64 * 1000.0 / frequency as f64 } else { 0.0 }
}

impl Stamps {
    /// How long the frame was on its way, ms, by clocks that differ by any constant.
    fn in_flight_ms(&self) -> f64 {
        milliseconds(self.receiver_counter, self.receiver_frequency)
            - milliseconds(self.sender_counter, self.sender_frequency)
    }
}

/// A frame's row in the file of jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JitterRow {
    /// The frame's number.
    pub sequence: i64,
    /// Its counters; zeros for a dropped frame.
    pub stamps: Stamps,
    /// How much longer the frame was on its way than the first completed one, ms.
    pub relative_ms: f64,
    /// The difference to the completed frame before, ms, without sign.
    pub change_ms: f64,
}

/// What compares each frame with the first completed one and with the one before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    /// How long the first completed frame was on its way, ms.
    first_ms: Option<f64>,
    previous_ms: f64,
}

impl Jitter {
    /// A completed frame's row.
    pub fn record_completed(&mut self, sequence: i64, stamps: Stamps) -> JitterRow {
        let in_flight_ms = stamps.in_flight_ms();
        let relative_ms = in_flight_ms - *self.first_ms.get_or_insert(in_flight_ms);
        let change_ms = (self.previous_ms - relative_ms).abs();
        self.previous_ms = relative_ms;
        JitterRow { sequence, stamps, relative_ms, change_ms }
    }
}
