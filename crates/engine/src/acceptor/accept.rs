//! One connection from a listener.

use std::io;
use std::net::SocketAddr;

use socket2::Socket;

use crate::socket::{accept_stream, plain};

/// What accepting came to.
pub(crate) enum Accepted {
    /// A connection, which doesn't block, and whose it is.
    Client(Socket, SocketAddr),
    /// The connection has gone already. Others may wait. A caller that accepts several at once counts it, so that a
    /// peer that resets its connections can't keep the caller in its loop.
    Gone,
    /// The backlog is empty.
    Empty,
    /// This machine has no descriptor, or no memory, for another connection. It stays in the backlog.
    Short(io::Error),
}

/// Accepts a connection.
///
/// # Errors
///
/// When the listener is of no more use.
pub(crate) fn accept(listener: &Socket) -> io::Result<Accepted> {
    match accept_stream(listener, false) {
        Ok(socket) => Ok(match socket.peer_addr().ok().and_then(|peer| peer.as_socket()) {
            Some(client) => Accepted::Client(socket, plain(client)),
            None => Accepted::Gone,
        }),
        Err(error) => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                Ok(Accepted::Short(error))
            }
            Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => Err(error),
            Some(libc::EINTR | libc::ECONNABORTED | libc::ECONNRESET) => Ok(Accepted::Gone),
            // Of an accepted connection the kernel may tell what its path told (accept(2)).
            _ => Ok(Accepted::Empty),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_that_are_reset_are_told_one_by_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || Socket::from(TcpStream::connect(address).unwrap());
        for _ in 0..3 {
            connect().set_linger(Some(Duration::ZERO)).unwrap();
        }
        let client = connect();
        let listener = Socket::from(listener);
        listener.set_nonblocking(true).unwrap();
        for _ in 0..3 {
            assert!(matches!(accept(&listener), Ok(Accepted::Gone)));
        }
        let accepted = accept(&listener).unwrap();
        let local = client.local_addr().unwrap().as_socket();
        assert!(matches!(accepted, Accepted::Client(_, peer) if Some(peer) == local));
        assert!(matches!(accept(&listener), Ok(Accepted::Empty)));
    }
}
