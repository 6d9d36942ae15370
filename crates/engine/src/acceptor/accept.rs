//! One connection from a listener.

use std::io;
use std::net::SocketAddr;

use socket2::Socket;

use crate::socket::{accept_stream, plain};

/// What accepting came to.
pub(crate) enum Accepted {
    /// A connection, which doesn't block, and whose it is.
    Client(Socket, SocketAddr),
    /// Nobody waits any more.
    Nobody,
    /// This machine has no descriptor, or no memory, for another connection. It stays in the backlog.
    Short(io::Error),
}

/// Accepts a connection. Those that have gone already are passed over.
///
/// # Errors
///
/// When the listener is of no more use.
pub(crate) fn accept(listener: &Socket) -> io::Result<Accepted> {
    loop {
        match accept_stream(listener, false) {
            Ok(socket) => {
                if let Some(client) = socket.peer_addr().ok().and_then(|peer| peer.as_socket()) {
                    return Ok(Accepted::Client(socket, plain(client)));
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                    return Ok(Accepted::Short(error));
                }
                Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => return Err(error),
                Some(libc::EINTR | libc::ECONNABORTED | libc::ECONNRESET) => {}
                // Of an accepted connection the kernel may tell what its path told (accept(2)).
                _ => return Ok(Accepted::Nobody),
            },
        }
    }
}
