//! How sockets are made, over TCP and UDP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_measure::SocketOptions;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::connections::Call;
use crate::error::Error;
use crate::socket::{configure_asked, listen_at, open_stream, unbound_listener};

/// Between two probes of a connection that doesn't answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// The longest TCP_KEEPIDLE of Linux.
const MOST_IDLE: Duration = Duration::from_secs(32_767);

/// How sockets are made.
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    /// TCP keepalive.
    pub keepalive: bool,
    /// Idle time before the first probe; later ones follow every second. Absent: the kernel's times.
    pub keepalive_idle: Option<Duration>,
    /// SO_RCVBUF.
    pub receive_buffer_bytes: Option<u32>,
    /// SO_SNDBUF.
    pub send_buffer_bytes: Option<u32>,
    /// The differentiated-services code point (RFC 2474).
    pub dscp: Option<u8>,
    /// The device that they are bound to.
    pub device: Option<String>,
}

impl Sockets {
    /// A socket for a TCP connection to this address.
    pub(super) fn open_stream(&self, server: SocketAddr) -> io::Result<Socket> {
        let socket = open_stream(server, &SocketOptions::default(), None)?;
        self.configure(&socket)?;
        Ok(socket)
    }

    /// A TCP socket that listens. What it has, the sockets that it accepts have too.
    pub(super) fn listen(&self, address: SocketAddr) -> io::Result<Socket> {
        let device = self.device.as_deref();
        let listener = unbound_listener(Protocol::TCP, address, device, address.is_ipv6())?;
        self.configure(&listener)?;
        listen_at(&listener, address)?;
        Ok(listener)
    }

    /// A UDP socket that doesn't block, bound to this address; or the call that failed, and why.
    pub(super) fn bind_datagram(&self, address: SocketAddr) -> Result<Socket, (Call, io::Error)> {
        let socket = self.open_datagram(address).map_err(|error| (Call::Socket, error))?;
        socket.bind(&address.into()).map_err(|error| (Call::Bind, error))?;
        Ok(socket)
    }

    fn open_datagram(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        self.configure(&socket)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
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

    /// A sentence for each buffer of sockets of this kind that is smaller than was asked. A socket of its own is
    /// asked: all get the same.
    pub(super) fn shortfalls(&self, kind: Type) -> Vec<String> {
        let Ok(socket) = Socket::new(Domain::IPV4, kind, None) else { return Vec::new() };
        let received = self.receive_buffer_bytes.and_then(|bytes| {
            socket.set_recv_buffer_size(bytes as usize).ok()?;
            shortfall("-RecvBufValue", "rmem_max", bytes, socket.recv_buffer_size().ok()?)
        });
        let sent = self.send_buffer_bytes.and_then(|bytes| {
            socket.set_send_buffer_size(bytes as usize).ok()?;
            shortfall("-SendBufValue", "wmem_max", bytes, socket.send_buffer_size().ok()?)
        });
        received.into_iter().chain(sent).collect()
    }
}

/// `granted` is what the kernel tells: twice the value, for what it adds to each packet (socket(7)).
fn shortfall(option: &str, limit: &str, asked: u32, granted: usize) -> Option<String> {
    let granted = granted / 2;
    (granted < asked as usize).then(|| {
        format!(
            "{option}: sockets get buffers of {granted} bytes, not {asked}: raise net.core.{limit} \
             to at least {asked}"
        )
    })
}

/// A server's socket at each of these addresses. Of several, the unspecified one of a family that the kernel lacks is
/// skipped.
pub(super) fn listen_at_each(
    addresses: &[SocketAddr],
    listen: impl Fn(SocketAddr) -> io::Result<Socket>,
) -> Result<Vec<Socket>, Error> {
    let mut sockets = Vec::new();
    for address in addresses {
        match listen(*address) {
            Ok(socket) => sockets.push(socket),
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
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_are_capped_are_told() {
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let most: u32 = most.trim().parse().unwrap();
        let asked = most.saturating_add(most / 2);
        let sockets = |receive, send| Sockets {
            receive_buffer_bytes: Some(receive),
            send_buffer_bytes: send,
            ..Sockets::default()
        };
        for kind in [Type::STREAM, Type::DGRAM] {
            assert_eq!(
                sockets(asked, Some(4096)).shortfalls(kind),
                [format!(
                    "-RecvBufValue: sockets get buffers of {most} bytes, not {asked}: raise \
                     net.core.rmem_max to at least {asked}"
                )]
            );
            assert!(sockets(most, None).shortfalls(kind).is_empty());
        }
    }

    #[test]
    fn family_that_the_kernel_lacks_is_skipped_where_all_addresses_are_asked() {
        let addresses = ["0.0.0.0:0", "[::]:0", "[::1]:0"].map(|address| address.parse().unwrap());
        let listen = |address: SocketAddr| match address.is_ipv6() {
            true => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
            false => Sockets::default().listen(address),
        };
        assert_eq!(listen_at_each(&addresses[..2], listen).unwrap().len(), 1);
        assert!(listen_at_each(&addresses[1..2], listen).is_err());
        assert!(listen_at_each(&addresses, listen).is_err());
    }
}
