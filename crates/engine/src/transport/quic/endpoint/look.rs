//! Whether an endpoint that waits asks again before it sleeps.

use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use socket2::Socket;

use crate::waiting::{Awaited, Backoff, Look as SharedLook, Peer, record_look};

/// A turn that brought less than this is not bulk.
const BULK_BYTES: usize = 32 << 10;
/// Pauses between two questions. A processor that shares its core with the sender's would slow that down
/// otherwise: 20 us without pauses brought nothing.
const PAUSES: u32 = 10;

/// One that asks again for a moment after it has received much, unless that comes from its own processor. (A
/// socket without a peer doesn't say from where; there looks in vain become rare.)
pub(crate) struct Look {
    /// Of one that receives in bulk: others don't count among those that look.
    shared: Option<SharedLook>,
    backoff: Backoff,
    received_bytes: usize,
}

impl Default for Look {
    fn default() -> Self {
        Self::new()
    }
}

impl Look {
    /// How long it polls.
    pub(crate) const LONGEST: Duration = Awaited::QuicPackets.look();

    pub(crate) fn new() -> Self {
        Self { shared: None, backoff: Backoff::new(Awaited::QuicPackets), received_bytes: 0 }
    }

    /// A turn has taken in so many bytes of packets.
    #[inline]
    pub(crate) fn record_turn(&mut self, bytes: usize) {
        self.received_bytes = bytes;
    }

    /// Whether the last turn brought much.
    pub(crate) fn is_in_bulk(&self) -> bool {
        self.received_bytes >= BULK_BYTES
    }

    /// Whether more packets come soon to where the last came from, which this socket is; if not, it's time to
    /// sleep. `ask` says whether there are some, and takes no lock that the sender needs.
    pub(crate) fn finds(
        &mut self,
        socket: &Socket,
        mut ask: impl FnMut() -> Result<(), Errno>,
    ) -> bool {
        if !self.is_in_bulk() {
            self.shared = None;
            return false;
        }
        let shared = self.shared.get_or_insert_with(SharedLook::new);
        let ask = || ask().inspect_err(|_| (0..PAUSES).for_each(|_| spin_loop()));
        shared.wait(&mut self.backoff, || Peer::of(socket), ask).is_some()
    }
}

/// Asks again and again for so long, whatever was learnt of waits before; whether something came.
///
/// # Errors
///
/// Those of asking.
pub(crate) fn insist(
    longest: Duration,
    mut ask: impl FnMut() -> io::Result<bool>,
) -> io::Result<bool> {
    if longest.is_zero() {
        return Ok(false);
    }
    if ask()? {
        return Ok(true);
    }
    let (began, mut came) = (Instant::now(), Ok(false));
    while matches!(came, Ok(false)) && began.elapsed() < longest {
        came = ask();
    }
    record_look(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    came
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::waiting::readiness;

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
        look.record_turn(BULK_BYTES - 1);
        assert!(!look.finds(&near, || readiness(&near)));
        look.record_turn(BULK_BYTES);
        assert!(look.finds(&near, || readiness(&near)));
        look.record_turn(0);
        assert!(!look.finds(&near, || readiness(&near)));
    }

    #[test]
    fn a_look_in_vain_ends_and_the_next_wait_sleeps_at_once() {
        let (near, far) = pair();
        let mut look = Look::new();
        look.record_turn(BULK_BYTES);
        assert!(!look.finds(&near, || readiness(&near)));
        far.send(&[7]).unwrap();
        assert!(!look.finds(&near, || readiness(&near)));
    }
}
