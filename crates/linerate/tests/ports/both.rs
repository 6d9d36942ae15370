//! A TCP and a UDP socket on one port.

use std::net::{TcpListener, UdpSocket};

/// Both, on a port that the system chooses. It chooses for TCP alone, so another program may have the port for UDP:
/// then another one is taken.
pub(crate) fn tcp_and_udp() -> (TcpListener, UdpSocket, u16) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if let Ok(datagrams) = UdpSocket::bind(address) {
            return (listener, datagrams, address.port());
        }
    }
}
