//! The sockets of a server's threads, which share a port.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::Socket;

use super::ids::ConnectionIds;
use crate::socket::{bind_datagram, enlarge_datagram_buffers, share_packets};

/// A socket that shares its port with others.
///
/// # Errors
///
/// Where nothing can listen there.
pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<Socket> {
    let socket = bind_datagram(address, None)?;
    enlarge_datagram_buffers(&socket)?;
    Ok(socket)
}

/// Has the kernel give each of the sockets, of which this is the first, the packets of the connections that are its
/// own, by the socket's number in their ids.
pub(crate) fn share_packets_of(first: &Socket, ids: ConnectionIds) {
    // The first byte is the header's.
    let number_at = 1 + ids.numbered(0).partition_at() as u32;
    // Where the kernel has no such programs, clients must keep their addresses.
    let _by_address = share_packets(first.as_fd(), number_at);
}
