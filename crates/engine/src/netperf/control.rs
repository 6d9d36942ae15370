//! The control connection: how soon the kernel, and callers of it, treat the other end as gone.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Socket, TcpKeepalive};

use crate::control::{Channel, Conversation, TcpChannel};
use crate::socket::tcp_last_heard;

/// The kernel is to leave it to a test whether its peer is gone: no test gets there.
const NEVER: Duration = Duration::from_secs(7 * 86_400);

/// A control connection and its machine.
pub(super) type Control<M> = Conversation<M, TcpChannel>;

/// Prepares a connection. A peer whose machine is gone is noticed after `silence`, of some seconds.
pub(super) fn channel(socket: Socket, silence: Duration) -> io::Result<TcpChannel> {
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    let second = Duration::from_secs(1);
    let alive = TcpKeepalive::new().with_time(second).with_interval(second);
    socket.set_tcp_keepalive(&alive)?;
    // Ends a connection whose probes aren't answered, too, in the place of their number.
    socket.set_tcp_user_timeout(Some(silence))?;
    Ok(TcpChannel::new(socket, Some(silence)))
}

/// Whether a silent peer is borne with: a test's load may hold up or drown all that it says.
pub(super) fn set_patient(channel: &TcpChannel, patient: bool) {
    let silence = if patient { Some(NEVER) } else { channel.last_timeout() };
    // Fails only where the connection is gone.
    let _gone = channel.socket().set_tcp_user_timeout(silence);
}

/// How long ago the last packet of the peer's machine came; unknown: just now.
pub(super) fn unheard(channel: &TcpChannel) -> Duration {
    tcp_last_heard(channel.as_fd()).map_or(Duration::ZERO, |(ago, _)| ago)
}

/// Whether all that was written has come to the peer's machine, as far as is known.
pub(super) fn is_acknowledged(channel: &TcpChannel) -> bool {
    !channel.has_unwritten()
        && tcp_last_heard(channel.as_fd()).is_none_or(|(_, acknowledged)| acknowledged)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_closed_connection_loses_its_longer_time_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = Socket::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (left, silence) = (socket.try_clone().unwrap(), Duration::from_secs(5));
        let channel = channel(socket, silence).unwrap();
        set_patient(&channel, true);
        assert_eq!(left.tcp_user_timeout().unwrap(), Some(NEVER));
        drop(channel);
        assert_eq!(left.tcp_user_timeout().unwrap(), Some(silence));
    }
}
