//! Whether an endpoint that waits asks again before it sleeps.

use std::hint::spin_loop;
use std::time::Duration;

use rustix::io::Errno;
use socket2::Socket;

use crate::transport::{Lookout, Patience, comes_from_here, readiness};

/// The most of its waits that sleep at once after looks in vain.
const MOST_PASSES: u32 = 255;
/// Who brought less than this in the last turn is not received from in bulk.
const BULK_BYTES: usize = 32 << 10;
/// Pauses between two questions. A processor that shares its core with the sender's would slow that down
/// otherwise: 20 us without pauses brought nothing.
const PAUSES: u32 = 10;

/// One that asks again for a moment after it has received much, unless that comes from its own processor. (A
/// socket without a peer doesn't say from where; there looks in vain become rare.)
pub(super) struct Look {
    /// Of one that receives in bulk: others don't count among those that look.
    lookout: Option<Lookout>,
    patience: Patience,
    received_bytes: usize,
}

impl Look {
    /// How long it asks. With packets of 1,472 bytes in clear a train comes about as often; 20 us are too
    /// short half of the time.
    pub(super) const LONGEST: Duration = Duration::from_micros(50);

    pub(super) fn new() -> Self {
        let patience = Patience::new(Self::LONGEST.as_nanos() as u64, MOST_PASSES);
        Self { lookout: None, patience, received_bytes: 0 }
    }

    /// Packets are taken in.
    pub(super) fn begin(&mut self) {
        self.received_bytes = 0;
    }

    /// So many bytes of them.
    #[inline]
    pub(super) fn record(&mut self, bytes: usize) {
        self.received_bytes += bytes;
    }

    /// Whether the last turn brought much.
    pub(super) fn is_in_bulk(&self) -> bool {
        self.received_bytes >= BULK_BYTES
    }

    /// Whether more packets come soon; if not, it's time to sleep.
    pub(super) fn finds(&mut self, socket: &Socket) -> bool {
        if !self.is_in_bulk() {
            self.lookout = None;
            return false;
        }
        let lookout = self.lookout.get_or_insert_with(Lookout::new);
        lookout.look(&mut self.patience, || !comes_from_here(socket), || ask(socket)).is_some()
    }
}

/// Asks whether there are packets; that takes no lock which the sender needs.
fn ask(socket: &Socket) -> Result<(), Errno> {
    readiness(socket).inspect_err(|_| (0..PAUSES).for_each(|_| spin_loop()))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    fn pair() -> (Socket, UdpSocket) {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        (near.into(), far)
    }

    #[test]
    fn it_finds_what_comes_after_much_and_never_looks_after_little() {
        let (near, far) = pair();
        let mut look = Look::new();
        far.send(&[7]).unwrap();
        look.record(BULK_BYTES - 1);
        assert!(!look.finds(&near));
        look.record(1);
        assert!(look.finds(&near));
        look.begin();
        assert!(!look.finds(&near));
    }

    #[test]
    fn a_look_in_vain_ends_and_the_next_wait_sleeps_at_once() {
        let (near, far) = pair();
        let mut look = Look::new();
        look.record(BULK_BYTES);
        assert!(!look.finds(&near));
        far.send(&[7]).unwrap();
        assert!(!look.finds(&near));
    }
}
