//! Datagrams: every client has a socket of its own towards the target, as behind a NAT.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventFlags};

use super::{CLIENTS_MAX, Source};
use crate::path::{Packet, Path};
use linerate_system::clock::{SECOND_NS, monotonic_ns};

/// The longest datagram there can be.
pub(super) const BUFFER_BYTES: usize = 65_535;
/// Datagrams taken from one socket before others are looked at.
const READS_MAX: usize = 32;
/// A client that was silent for so long may make room for another.
const IDLE_NS: u64 = 60 * SECOND_NS;

/// The clients.
#[derive(Debug)]
pub(super) struct Associations {
    socket: UdpSocket,
    target: SocketAddr,
    of_client: HashMap<SocketAddr, u32>,
    of_tag: HashMap<u32, Association>,
    next_tag: u32,
    turned_away: u64,
}

#[derive(Debug)]
struct Association {
    client: SocketAddr,
    socket: UdpSocket,
    last_ns: u64,
}

impl Associations {
    pub(super) fn new(socket: UdpSocket, target: SocketAddr, poll: &OwnedFd) -> io::Result<Self> {
        epoll::add(poll, &socket, Source::Datagrams.data(), EventFlags::IN)?;
        let (of_client, of_tag) = (HashMap::new(), HashMap::new());
        Ok(Self { socket, target, of_client, of_tag, next_tag: 0, turned_away: 0 })
    }

    /// Datagrams dropped because there were too many clients.
    pub(super) fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Clients have sent something.
    pub(super) fn handle_datagrams(&mut self, poll: &OwnedFd, path: &mut Path) -> io::Result<()> {
        for _ in 0..READS_MAX {
            let mut bytes = path.buffer();
            let (length, client) = match self.socket.recv_from(&mut bytes) {
                Ok(received) => received,
                Err(error) => {
                    path.recycle(bytes);
                    return match error.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                        // A client that has gone: the system says so of a datagram sent before.
                        io::ErrorKind::ConnectionRefused => Ok(()),
                        _ => Err(error),
                    };
                }
            };
            let now_ns = monotonic_ns();
            match self.association(client, now_ns, poll)? {
                Some(tag) => path.offer(now_ns, Packet { bytes, length, tag }),
                None => {
                    self.turned_away += 1;
                    path.recycle(bytes);
                }
            }
        }
        Ok(())
    }

    /// The target has answered a client.
    pub(super) fn handle_answers(&mut self, tag: u32, path: &mut Path) {
        let Some(association) = self.of_tag.get_mut(&tag) else { return };
        for _ in 0..READS_MAX {
            let mut bytes = path.buffer();
            match association.socket.recv(&mut bytes) {
                Ok(length) => {
                    association.last_ns = monotonic_ns();
                    path.offer(association.last_ns, Packet { bytes, length, tag });
                }
                // Also if the target's port is closed: a datagram is lost then, as elsewhere.
                Err(_) => {
                    path.recycle(bytes);
                    return;
                }
            }
        }
    }

    /// Sends a datagram on to the right (0) or left (1); whether that went.
    pub(super) fn send(&self, direction: usize, packet: &Packet) -> bool {
        let Some(association) = self.of_tag.get(&packet.tag) else { return false };
        let sent = if direction == 0 {
            association.socket.send(packet.content())
        } else {
            self.socket.send_to(packet.content(), association.client)
        };
        sent.is_ok()
    }

    fn association(
        &mut self,
        client: SocketAddr,
        now_ns: u64,
        poll: &OwnedFd,
    ) -> io::Result<Option<u32>> {
        if let Some(tag) = self.of_client.get(&client) {
            if let Some(association) = self.of_tag.get_mut(tag) {
                association.last_ns = now_ns;
            }
            return Ok(Some(*tag));
        }
        if self.of_tag.len() >= CLIENTS_MAX {
            self.forget_idle(now_ns);
            if self.of_tag.len() >= CLIENTS_MAX {
                return Ok(None);
            }
        }
        let anywhere: SocketAddr = match self.target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(anywhere)?;
        socket.connect(self.target)?;
        socket.set_nonblocking(true)?;
        // Numbers come back after 2^32 clients: long after what was in flight has gone.
        let tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(1);
        epoll::add(poll, &socket, Source::Answers(tag).data(), EventFlags::IN)?;
        self.of_client.insert(client, tag);
        self.of_tag.insert(tag, Association { client, socket, last_ns: now_ns });
        Ok(Some(tag))
    }

    fn forget_idle(&mut self, now_ns: u64) {
        self.of_tag.retain(|_, association| now_ns - association.last_ns < IDLE_NS);
        self.of_client.retain(|_, tag| self.of_tag.contains_key(tag));
    }
}
