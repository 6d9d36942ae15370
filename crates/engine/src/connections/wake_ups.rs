//! How often a connection wakes the thread that accepts it.

use std::os::fd::AsFd;

use socket2::Socket;

use super::spin_wait::CONNECTIONS_PER_LOOK;
use crate::socket::set_defer_accept;
use crate::waiting::Peer;

/// Whether a listener's owner is woken once for a connection, by its request, or twice, by the handshake too.
///
/// On a processor that also takes the packets in, each wake-up costs the peer its turn. On another one each
/// wake-up has the thread awake for what comes next.
pub(crate) struct WakeUps {
    /// Whether they are to be chosen; otherwise the listener stays as it is.
    chooses: bool,
    accepted: u32,
    once: bool,
    /// Whether packets are taken in on this processor.
    here: bool,
}

impl WakeUps {
    pub(super) fn new(chooses: bool) -> Self {
        Self { chooses, accepted: 0, once: false, here: false }
    }

    /// A connection was accepted: looks where its peer is at the first and at times after it, and chooses anew;
    /// says whether that is another place now.
    pub(super) fn choose(&mut self, listener: &Socket, accepted: &Socket) -> bool {
        let looks = self.accepted.is_multiple_of(CONNECTIONS_PER_LOOK);
        self.accepted = self.accepted.wrapping_add(1);
        if !looks {
            return false;
        }
        let here = Peer::of(accepted) != Peer::Elsewhere;
        let changes = here != self.here;
        self.here = here;
        if self.chooses && here != self.once && set_defer_accept(listener.as_fd(), here).is_ok() {
            self.once = here;
        }
        changes
    }

    /// Whether it is woken once, by the request.
    pub(super) fn once(&self) -> bool {
        self.once
    }

    /// Where the peer was found to be.
    pub(super) fn peer(&self) -> Peer {
        if self.here { Peer::Here } else { Peer::Elsewhere }
    }

    /// Connections accepted.
    pub(super) fn accepted(&self) -> u32 {
        self.accepted
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_peer_on_this_processor_wakes_once_and_is_looked_at_seldom() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let cpu = u32::try_from(rustix::thread::sched_getcpu()).unwrap();
                linerate_system::affinity::pin(cpu).unwrap();
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let address = listener.local_addr().unwrap();
                let listener = Socket::from(listener);
                let mut wake_ups = WakeUps::new(true);
                let changes: Vec<u32> = (0..=CONNECTIONS_PER_LOOK)
                    .filter(|_| {
                        let mut peer = TcpStream::connect(address).unwrap();
                        peer.write_all(b"?").unwrap();
                        let accepted = listener.accept().unwrap().0;
                        wake_ups.choose(&listener, &accepted)
                    })
                    .collect();
                assert_eq!((changes, wake_ups.once()), (vec![0], true));
                assert_eq!(wake_ups.accepted(), CONNECTIONS_PER_LOOK + 1);
            });
        });
    }
}
