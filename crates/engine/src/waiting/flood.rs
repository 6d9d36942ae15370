//! Whether a receiver of datagrams that come without end lets some gather before it asks again.

use std::cell::Cell;

use socket2::Socket;

use crate::clock::monotonic_ns;

/// How long a rest is. The thread spins meanwhile: a rest asleep is longer, by the kernel's timer.
const REST_NS: u64 = 20_000;
/// The least receive buffer (as SO_RCVBUF tells it, the kernel's own needs included), which has room for what
/// comes in many rests.
const ROOM_BYTES: usize = 8 << 20;
/// Datagrams come without end when so many waits in a row were over before the receiver had to sleep.
const AWAKE_WAITS: u32 = 64;
/// The least datagrams of a train. Those of shorter ones would arrive visibly later for a rest, which is
/// jitter; of longer ones all but the first arrive together in any case.
const LEAST_TRAIN: usize = 16;

/// The rests of a receiver of datagrams: each question costs the sender the cache lines that both want.
///
/// It keeps its processor meanwhile: asleep it would have to be woken in time.
pub(super) struct FloodRests {
    /// Waits in a row that were over before it had to sleep.
    awake_waits: u32,
    waited: Cell<bool>,
}

impl FloodRests {
    /// `None` where the socket has no room for what comes during rests.
    pub(super) fn of(socket: &Socket) -> Option<Self> {
        let has_room = socket.recv_buffer_size().is_ok_and(|bytes| bytes >= ROOM_BYTES);
        has_room.then(Self::new)
    }

    fn new() -> Self {
        Self { awake_waits: 0, waited: Cell::new(false) }
    }

    /// Between two questions: rests, where datagrams come without end.
    pub(super) fn wait(&self) {
        self.waited.set(true);
        if self.awake_waits < AWAKE_WAITS {
            return;
        }
        let until_ns = monotonic_ns() + REST_NS;
        while monotonic_ns() < until_ns {
            std::hint::spin_loop();
        }
    }

    /// The wait is over: something has come, or the receiver sleeps.
    pub(super) fn record_wait(&mut self, came: bool) {
        let waited = self.waited.take();
        self.awake_waits =
            if came { self.awake_waits.saturating_add(u32::from(waited)) } else { 0 };
    }

    /// So much has come at once, in datagrams of one size.
    pub(super) fn record_train(&mut self, length: usize, unit_bytes: usize) {
        if length < unit_bytes.saturating_mul(LEAST_TRAIN) {
            self.awake_waits = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a wait takes that comes after others.
    fn wait_ns(rests: &FloodRests) -> u64 {
        let began_ns = monotonic_ns();
        rests.wait();
        monotonic_ns() - began_ns
    }

    fn after_awake_waits() -> FloodRests {
        let mut rests = FloodRests::new();
        for _ in 0..AWAKE_WAITS {
            rests.wait();
            rests.record_wait(true);
        }
        rests
    }

    #[test]
    fn it_rests_once_datagrams_come_without_end() {
        let mut rests = after_awake_waits();
        assert!(wait_ns(&rests) >= REST_NS);
        // A receiver of unrequested datagrams has not waited for any.
        rests.record_wait(true);
        rests.record_wait(true);
        assert_eq!(rests.awake_waits, AWAKE_WAITS + 1);
        rests.record_wait(false);
        assert_eq!(rests.awake_waits, 0);
    }

    #[test]
    fn short_trains_end_the_rests() {
        let mut rests = after_awake_waits();
        rests.record_train(16 * 1400, 1400);
        assert_eq!(rests.awake_waits, AWAKE_WAITS);
        rests.record_train(16 * 1400 - 1, 1400);
        assert_eq!(rests.awake_waits, 0);
    }

    #[test]
    fn a_small_buffer_has_no_room_for_rests() {
        let socket = Socket::from(std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        socket.set_recv_buffer_size(64 << 10).unwrap();
        assert!(FloodRests::of(&socket).is_none());
    }
}
