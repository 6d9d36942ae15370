//! How much a turn may do: bounded, so that acknowledgements leave while packets come and the other way
//! round.

/// Trains that a turn takes in, and sends that it makes.
const TRAINS_PER_TURN: usize = 8;
const SENDS_PER_TURN: usize = 16;
/// Long trains are bounded by their bytes: what is acknowledged early frees memory that the cache still
/// has (4 trains in place of 16 make uploads 7 % faster). Many connections with little each are not:
/// in turns of 4 sends 10,000 of them time out.
const BYTES_PER_TURN: usize = 256 << 10;

/// Behind a train that is shorter there is nothing as a rule, where one socket has one connection.
const LONG_TRAIN_BYTES: usize = 16 << 10;

/// What a turn has taken in, of all sockets.
#[derive(Debug, Default)]
pub(super) struct Intake {
    trains: usize,
    bytes: usize,
    is_told: bool,
}

impl Intake {
    /// Of sockets with one connection each, which are told by level where there is more.
    pub(super) fn told() -> Self {
        Self { is_told: true, ..Self::default() }
    }

    /// Bytes of the trains that have come.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the next turn takes what is left.
    pub(super) fn is_spent(&self) -> bool {
        self.trains >= TRAINS_PER_TURN
    }

    /// One is asked for.
    pub(super) fn record_request(&mut self) {
        self.trains += 1;
    }

    /// It has come; whether it is, as a rule, all there is. The next wait tells if not.
    pub(super) fn record_train(&mut self, bytes: usize, segment_bytes: usize) -> bool {
        self.bytes += bytes;
        bytes <= segment_bytes || self.is_told && bytes < LONG_TRAIN_BYTES
    }
}

/// What a turn has sent, by all sockets.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    sends: usize,
    bytes: usize,
}

impl Outlet {
    /// Whether the next turn sends what is left.
    pub(super) fn is_spent(&self) -> bool {
        self.sends >= SENDS_PER_TURN || self.bytes >= BYTES_PER_TURN
    }

    /// Something was sent, or nothing was there to be sent.
    pub(super) fn record_send(&mut self, bytes: usize) {
        self.sends += 1;
        self.bytes += bytes;
    }
}
