//! How an end that has one connection at a time waits for its peer.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use socket2::Socket;

use crate::waiting::{Awaited as Kind, Backoff, Look, Peer, readiness};

/// Of so many connections one shows where the peer's packets come in.
pub(super) const CONNECTIONS_PER_LOOK: u32 = 64;

/// What an end waits for. Each has a backoff of its own: where connections come by a schedule the next
/// is far, its request near.
#[derive(Clone, Copy)]
pub(crate) enum Awaited {
    Connection,
    Bytes,
    Close,
}

/// How an end with one connection at a time waits: it polls for a moment before it sleeps, if its peer has
/// another processor.
///
/// The ends of a connection of one request wake each other half a dozen times, which takes longer than
/// the work in between.
pub(super) struct SpinWait {
    look: Look,
    /// By what is awaited.
    backoffs: [Backoff; 3],
    /// Where the peer is.
    peer: Peer,
    /// Connections seen.
    connections: u32,
}

impl SpinWait {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            look: Look::new(),
            backoffs: [(); 3].map(|()| Backoff::new(Kind::Exchange)),
            peer,
            connections: 0,
        }
    }

    /// Learns where the peer is, now and then, from a connection over which it has sent something: its
    /// handshake is taken in where it was begun.
    pub(super) fn learn(&mut self, socket: &Socket) {
        if self.connections.is_multiple_of(CONNECTIONS_PER_LOOK) {
            self.peer = Peer::of(socket);
        }
        self.connections = self.connections.wrapping_add(1);
    }

    /// Whether the peer has another processor.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.peer == Peer::Elsewhere
    }

    /// Receives from a socket that blocks.
    pub(super) fn receive(
        &mut self,
        awaited: Awaited,
        socket: &Socket,
        into: &mut [u8],
        flags: RecvFlags,
    ) -> io::Result<usize> {
        let receive = |into: &mut [u8], more: RecvFlags| {
            recv(socket.as_fd(), into, flags | more).map(|(length, _)| length)
        };
        let came = self.look(awaited, || receive(&mut *into, RecvFlags::DONTWAIT));
        Ok(came.unwrap_or_else(|| receive(into, RecvFlags::empty()))?)
    }

    /// Whether a connection has come, or comes in a moment; not asked where the peer shares the processor.
    pub(super) fn has_come(&mut self, listener: &Socket) -> bool {
        self.peer == Peer::Elsewhere
            && matches!(self.look(Awaited::Connection, || readiness(listener)), Some(Ok(())))
    }

    fn look<T>(
        &mut self,
        awaited: Awaited,
        attempt: impl FnMut() -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        let peer = self.peer;
        self.look.wait(&mut self.backoffs[awaited as usize], || peer, attempt)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::time::Duration;

    use super::*;

    fn listener() -> Socket {
        Socket::from(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn connect(listener: &Socket) -> TcpStream {
        TcpStream::connect(listener.local_addr().unwrap().as_socket().unwrap()).unwrap()
    }

    #[test]
    fn it_receives_what_comes_during_a_look_and_after_it() {
        for (peer, pause) in
            [(Peer::Elsewhere, 0), (Peer::Elsewhere, 20), (Peer::Here, 0), (Peer::Here, 20)]
        {
            let listener = listener();
            let mut client = connect(&listener);
            let (server, _) = listener.accept().unwrap();
            let sender = std::thread::spawn(move || {
                for byte in 0..3 {
                    std::thread::sleep(Duration::from_millis(pause));
                    client.write_all(&[byte]).unwrap();
                }
            });
            let (mut wait, mut into) = (SpinWait::new(peer), [0; 8]);
            let mut came = Vec::new();
            loop {
                let seen =
                    wait.receive(Awaited::Bytes, &server, &mut into, RecvFlags::PEEK).unwrap();
                let length =
                    wait.receive(Awaited::Bytes, &server, &mut into, RecvFlags::empty()).unwrap();
                if length == 0 {
                    break;
                }
                assert!(seen <= length, "{seen} of {length}");
                came.extend_from_slice(&into[..length]);
            }
            assert_eq!(came, [0, 1, 2]);
            sender.join().unwrap();
        }
    }

    #[test]
    fn it_sees_a_connection_that_has_come_and_one_that_comes() {
        let listener = listener();
        let mut wait = SpinWait::new(Peer::Elsewhere);
        assert!(!wait.has_come(&listener));
        let _client = connect(&listener);
        // After a look in vain the next waits sleep at once.
        assert!((0..=15).any(|_| wait.has_come(&listener)));
        assert!(wait.has_come(&listener));
        assert!(!SpinWait::new(Peer::Here).has_come(&listener));
    }

    #[test]
    fn it_learns_where_its_peer_is_now_and_then() {
        // Whatever hasn't received anything has not received it from elsewhere.
        let silent = Socket::from(UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut wait = SpinWait::new(Peer::Elsewhere);
        let mut learns = |_: &u32| {
            wait.peer = Peer::Elsewhere;
            wait.learn(&silent);
            wait.peer == Peer::Unknown
        };
        let learned: Vec<u32> = (0..2 * CONNECTIONS_PER_LOOK).filter(|n| learns(n)).collect();
        assert_eq!(learned, [0, CONNECTIONS_PER_LOOK]);
    }
}
