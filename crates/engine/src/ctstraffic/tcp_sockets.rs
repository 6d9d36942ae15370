//! The sockets of clients and servers over TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_measure::SocketOptions;
use socket2::{Protocol, Socket, TcpKeepalive};

use super::tcp_plan::TcpSockets;
use crate::error::Error;
use crate::socket::{configure_asked, listen_at, open_stream, unbound_listener};

/// Between two probes of a connection that doesn't answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// The longest TCP_KEEPIDLE of Linux.
const MOST_IDLE: Duration = Duration::from_secs(32_767);
impl TcpSockets {
    /// A socket for a connection to this address.
    pub(super) fn open(&self, server: SocketAddr) -> io::Result<Socket> {
        let socket = open_stream(server, &SocketOptions::default(), None)?;
        self.configure(&socket)?;
        Ok(socket)
    }

    /// Listens at all these addresses. Of several, the unspecified one of a family that the kernel lacks is skipped.
    pub(super) fn listen(&self, addresses: &[SocketAddr]) -> Result<Vec<Arc<Socket>>, Error> {
        let mut listeners = Vec::new();
        for address in addresses {
            match self.listen_at(*address) {
                Ok(listener) => listeners.push(Arc::new(listener)),
                Err(error)
                    if error.raw_os_error() == Some(libc::EAFNOSUPPORT)
                        && address.ip().is_unspecified()
                        && addresses.len() > 1 => {}
                Err(source) => {
                    let (operation, address) = ("listen on", address.to_string());
                    return Err(Error::Io { operation, address, source });
                }
            }
        }
        Ok(listeners)
    }

    /// What a listener has, the sockets that it accepts have too.
    fn listen_at(&self, address: SocketAddr) -> io::Result<Socket> {
        let device = self.device.as_deref();
        let listener = unbound_listener(Protocol::TCP, address, device, address.is_ipv6())?;
        self.configure(&listener)?;
        listen_at(&listener, address)?;
        Ok(listener)
    }

    fn configure(&self, socket: &Socket) -> io::Result<()> {
        match self.keepalive_idle {
            Some(idle) => {
                // The kernel counts whole seconds, and takes no more (tcp(7)).
                let idle = idle.clamp(Duration::from_secs(1), MOST_IDLE);
                let probes = TcpKeepalive::new().with_time(idle).with_interval(PROBE_INTERVAL);
                socket.set_tcp_keepalive(&probes)?;
            }
            None if self.keepalive => socket.set_keepalive(true)?,
            None => {}
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = self.send_buffer_bytes {
            socket.set_send_buffer_size(bytes as usize)?;
        }
        let options = SocketOptions { dscp: self.dscp, ..SocketOptions::default() };
        configure_asked(socket, &options)
    }
}
