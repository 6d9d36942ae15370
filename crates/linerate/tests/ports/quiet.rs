//! Ports for servers that are told one.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that nobody has, over TCP or UDP, and no other test here gets. It lies below those that the system hands
/// out by itself, so that no client's socket takes it before the server does.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 64 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(10_000 + number % 20_000).unwrap();
        let is_free = TcpListener::bind(("0.0.0.0", port)).is_ok();
        if is_free && UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}
