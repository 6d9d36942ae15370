//! Stopping a server by a datagram, as the original's test scripts do.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::{Message, ServerEvent, tell};

/// The whole of the datagram.
pub(in crate::perf) const REQUEST: [u8; 16] = [
    0x57, 0xe6, 0x15, 0xff, 0x26, 0x4f, 0x0e, 0x57, 0x88, 0xab, 0x07, 0x96, 0xb2, 0x58, 0xd1, 0x1c,
];

pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(socket)
}

/// Waits for the datagram, or for the server's end.
pub(super) fn run(socket: &UdpSocket, stop: &AtomicBool, sender: &Sender<Message>) {
    let mut datagram = [0; REQUEST.len() + 1];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut datagram)
            && datagram.get(..length) == Some(&REQUEST[..])
        {
            return tell(sender, ServerEvent::StopAsked);
        }
    }
}
