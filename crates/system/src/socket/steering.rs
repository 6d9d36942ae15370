//! Which of the sockets that share a port gets a packet.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{BPF_A, BPF_ABS, BPF_B, BPF_H, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET};
use libc::{c_void, sock_filter, sock_fprog, socklen_t};

/// The bit of a QUIC packet's first byte that its long header has (RFC 9000, section 17).
const LONG_HEADER: u32 = 0x80;
/// No socket has this number: the kernel chooses by the addresses, as without a program.
const BY_ADDRESS: u32 = u32::MAX;

/// Has the sockets that share this one's port get QUIC's packets with a short header by the number, 2
/// bytes, that stands so far behind a packet's start: the socket that was bound first is 0. Others, whose
/// sender doesn't know the number yet, go by their addresses.
pub fn share_packets(socket: BorrowedFd<'_>, number_at: u32) -> io::Result<()> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    // SO_ATTACH_REUSEPORT_CBPF (socket(7)): bytes are counted from the UDP payload on.
    let mut program = [
        step(BPF_LD | BPF_B | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JSET | BPF_K, 2, 0, LONG_HEADER),
        step(BPF_LD | BPF_H | BPF_ABS, 0, 0, number_at),
        step(BPF_RET | BPF_A, 0, 0, 0),
        step(BPF_RET | BPF_K, 0, 0, BY_ADDRESS),
    ];
    let description = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `description` and the program that it points to outlive the call, which copies both and
    // writes to neither; the length is that of `description`; the descriptor is borrowed, so it is open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const description).cast::<c_void>(),
            size_of::<sock_fprog>() as socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use socket2::Socket;

    use super::*;
    use crate::socket::bind_datagram;

    #[test]
    fn packets_go_to_the_socket_whose_number_they_have() {
        let first = bind_datagram("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let address = first.local_addr().unwrap().as_socket().unwrap();
        let mut sockets = vec![first];
        sockets.extend((1..4).map(|_| bind_datagram(address, None).unwrap()));
        share_packets(sockets[0].as_fd(), 3).unwrap();
        for socket in &sockets {
            socket.set_nonblocking(false).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
        let receive = |socket: &Socket| {
            let mut bytes = [0; 64];
            let got = rustix::net::recv(socket, &mut bytes[..], rustix::net::RecvFlags::empty());
            bytes[..got.unwrap().0].to_vec()
        };
        // Each from a port of its own, so that the addresses would spread them.
        let ports: Vec<UdpSocket> =
            (0..5).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        for from in &ports {
            for (number, socket) in sockets.iter().enumerate() {
                let said = [0x40, 9, 9, 0, number as u8, 7];
                from.send_to(&said, address).unwrap();
                assert_eq!(receive(socket), said);
            }
        }
        // A number that no socket has, or a long header: any socket gets the packet.
        for from in &ports {
            for said in [[0x40, 0, 0, 1, 77, 7], [0xc0, 0, 0, 0, 1, 7]] {
                from.send_to(&said, address).unwrap();
            }
        }
        let mut left = 0;
        for socket in &sockets {
            socket.set_nonblocking(true).unwrap();
            let mut bytes = [0; 64];
            while rustix::net::recv(socket, &mut bytes[..], rustix::net::RecvFlags::empty()).is_ok()
            {
                left += 1;
            }
        }
        assert_eq!(left, 10);
    }
}
