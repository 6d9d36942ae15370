//! Data sockets: their options, and what the kernel made of them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use linerate_wire::netperf::omni::DATAGRAM_MAX_BYTES;
use linerate_wire::netperf::test::Transport;
use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, Socket, Type};

use crate::socket::{
    accept_fast_open, plain, set_debug, set_defer_accept, set_fast_open, set_pacing_rate,
    set_unfragmented, set_unrouted,
};

/// A figure that was asked for and refused.
const REFUSED: i32 = -2;
const NOT_ASKED: i32 = -1;
/// A size that isn't known.
const UNKNOWN: i32 = -1;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// What is asked of a data socket; absent: as the kernel has it.
#[derive(Clone, Debug, Default)]
pub(super) struct DataPlan {
    pub(super) send_buffer_bytes: Option<u32>,
    pub(super) receive_buffer_bytes: Option<u32>,
    pub(super) no_delay: bool,
    pub(super) cork: bool,
    pub(super) keep_alive: bool,
    pub(super) unrouted: bool,
    pub(super) dont_fragment: bool,
    pub(super) defer_accept: bool,
    /// Fast Open, of a connection that is made and of one that is awaited.
    pub(super) fast_open: bool,
    pub(super) answers_fast_open: bool,
    pub(super) debug: bool,
    pub(super) congestion: Option<String>,
    pub(super) priority: Option<u32>,
    pub(super) service: Option<u8>,
    pub(super) mss_bytes: Option<u32>,
    pub(super) most_bytes_per_s: Option<u64>,
    pub(super) multicast_ttl: Option<u32>,
}

/// What the kernel made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) send_buffer_bytes: i32,
    pub(super) receive_buffer_bytes: i32,
    pub(super) priority: i32,
    pub(super) service: i32,
}

/// What a unit is where the system doesn't tell a buffer's size.
const UNKNOWN_BYTES: u32 = 4096;

impl Granted {
    /// Default bytes of a send: what the socket's buffer holds.
    pub(super) fn send_unit_bytes(&self, transport: Transport) -> u32 {
        unit(self.send_buffer_bytes, transport)
    }

    /// Bytes of a receive, likewise.
    pub(super) fn receive_unit_bytes(&self, transport: Transport) -> u32 {
        unit(self.receive_buffer_bytes, transport)
    }
}

/// Default number of buffers in a ring, as the original shows it: one more than fit
/// the socket's buffer, and at least two.
pub(super) fn ring(asked: u32, buffer_bytes: i32, unit_bytes: u32) -> i32 {
    if asked > 0 {
        return i32::try_from(asked).unwrap_or(i32::MAX);
    }
    let unit_bytes = i32::try_from(unit_bytes).unwrap_or(i32::MAX).max(1);
    (buffer_bytes.max(0) / unit_bytes).saturating_add(1).max(2)
}

fn unit(buffer_bytes: i32, transport: Transport) -> u32 {
    let bytes = u32::try_from(buffer_bytes).ok().filter(|bytes| *bytes > 0);
    let most = if transport == Transport::Udp { DATAGRAM_MAX_BYTES } else { u32::MAX };
    bytes.unwrap_or(UNKNOWN_BYTES).min(most)
}

impl DataPlan {
    /// A socket with all its options, not yet bound, and what the kernel made of it.
    pub(super) fn open(&self, transport: Transport, v6: bool) -> io::Result<(Socket, Granted)> {
        let (socket, priority, service) = self.make(transport, v6)?;
        let granted = Granted {
            send_buffer_bytes: size(socket.send_buffer_size()),
            receive_buffer_bytes: size(socket.recv_buffer_size()),
            priority,
            service,
        };
        Ok((socket, granted))
    }

    /// The socket alone, for those that make many: every call counts. With it what became of its
    /// priority and its service.
    pub(super) fn make(&self, transport: Transport, v6: bool) -> io::Result<(Socket, i32, i32)> {
        let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
        let (kind, protocol) = match transport {
            Transport::Tcp => (Type::STREAM, Protocol::TCP),
            Transport::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket = Socket::new(domain, kind, Some(protocol))?;
        if let Some(bytes) = self.send_buffer_bytes {
            socket.set_send_buffer_size(bytes as usize)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes as usize)?;
        }
        if transport == Transport::Tcp {
            self.configure_stream(&socket)?;
        }
        if self.debug {
            set_debug(socket.as_fd())?;
        }
        if self.unrouted {
            set_unrouted(socket.as_fd())?;
        }
        if self.dont_fragment {
            set_unfragmented(socket.as_fd(), v6)?;
        }
        if let Some(rate) = self.most_bytes_per_s {
            set_pacing_rate(socket.as_fd(), rate.saturating_mul(8))?;
        }
        if let Some(ttl) = self.multicast_ttl {
            if v6 { socket.set_multicast_hops_v6(ttl) } else { socket.set_multicast_ttl_v4(ttl) }?;
        }
        let priority = outcome(self.priority, |priority| socket.set_priority(priority));
        let service = outcome(self.service.map(u32::from), |service| {
            if v6 { socket.set_tclass_v6(service) } else { socket.set_tos_v4(service) }
        });
        Ok((socket, priority, service))
    }

    fn configure_stream(&self, socket: &Socket) -> io::Result<()> {
        if self.no_delay {
            socket.set_tcp_nodelay(true)?;
        }
        if self.fast_open {
            set_fast_open(socket.as_fd())?;
        }
        if self.cork {
            socket.set_tcp_cork(true)?;
        }
        if self.keep_alive {
            socket.set_keepalive(true)?;
        }
        if let Some(name) = &self.congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        if let Some(bytes) = self.mss_bytes {
            socket.set_tcp_mss(bytes)?;
        }
        Ok(())
    }

    /// A socket that waits for its client: a listener, or one for datagrams. Says, too, where.
    pub(super) fn await_client(
        &self,
        transport: Transport,
        address: SocketAddr,
    ) -> io::Result<(Socket, Granted, u16)> {
        let (socket, granted) = self.open(transport, address.is_ipv6())?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        if transport == Transport::Tcp {
            if self.defer_accept {
                set_defer_accept(socket.as_fd(), true)?;
            }
            if self.answers_fast_open {
                accept_fast_open(socket.as_fd(), BACKLOG)?;
            }
            socket.listen(BACKLOG)?;
        }
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.as_socket().map_or(0, |address| address.port());
        Ok((socket, granted, port))
    }
}

/// A size as messages have it; -1: not known.
fn size(bytes: io::Result<usize>) -> i32 {
    bytes.ok().and_then(|bytes| i32::try_from(bytes).ok()).unwrap_or(UNKNOWN)
}

fn outcome(asked: Option<u32>, set: impl FnOnce(u32) -> io::Result<()>) -> i32 {
    let Some(value) = asked else { return NOT_ASKED };
    match set(value) {
        Ok(()) => i32::try_from(value).unwrap_or(i32::MAX),
        Err(_) => REFUSED,
    }
}

/// Where the first datagram that waits came from. A datagram from another address is dropped.
pub(super) fn first_sender(socket: &Socket, client: Option<IpAddr>) -> Option<SocketAddr> {
    loop {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (_, _, sender) = rustix::net::recvfrom(socket.as_fd(), &mut [0_u8; 1], flags).ok()?;
        let sender = sender.and_then(|address| SocketAddr::try_from(address).ok());
        match sender {
            Some(sender) if client.is_none_or(|client| plain(sender).ip() == client) => {
                return Some(sender);
            }
            _ => {
                rustix::net::recv(socket.as_fd(), &mut [0_u8; 1], RecvFlags::DONTWAIT).ok()?;
            }
        }
    }
}
