//! What a UDP socket is told of datagrams that came to nothing (IP_RECVERR of ip(7), IPV6_RECVERR of ipv6(7)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::option::set_option;
use super::packet::{Control, empty_message};

/// Entries that are taken out of the queue at once: more than a moment of any path's errors, and no flood of them
/// holds up a thread.
const MOST_AT_ONCE: usize = 1024;

/// Has sends fail with ENOBUFS where a queue of this machine drops the datagram: without the option the kernel says
/// that it was sent. An IPv6 socket sends to IPv4 addresses too.
///
/// # Errors
///
/// Where the kernel doesn't have the option.
pub fn tell_refusals(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
    if ipv6 {
        set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
    }
    Ok(())
}

/// Empties the queue of errors, which would have every poll return at once; says whether all that it held are errors
/// of the path that a socket without the option is not told of.
pub fn only_passing_errors(socket: BorrowedFd<'_>) -> bool {
    let errors = std::iter::from_fn(|| take_error(socket)).take(MOST_AT_ONCE);
    let (count, passing) = errors.fold((0_usize, 0_usize), |(count, passing), is_passing| {
        (count + 1, passing + usize::from(is_passing))
    });
    count > 0 && count == passing
}

/// Empties the queue of errors of a socket that sends to many peers; says whether it held errors that hosts of the path
/// have sent. A call that fails meanwhile may have met such an error of another peer.
pub fn take_path_errors(socket: BorrowedFd<'_>) -> bool {
    let entries = std::iter::from_fn(|| take_entry(socket)).take(MOST_AT_ONCE);
    entries.fold(false, |any, entry| any | entry.is_some_and(|(_, is_of_path)| is_of_path))
}

/// Takes the next entry; says whether its error is one that passes. `None`: there is none.
fn take_error(socket: BorrowedFd<'_>) -> Option<bool> {
    take_entry(socket).map(|entry| entry.is_some_and(|(is_passing, _)| is_passing))
}

/// Takes the next entry: whether its error passes, and whether a host of the path has sent it; `Some(None)` where it
/// can't be read. `None`: there is no entry.
fn take_entry(socket: BorrowedFd<'_>) -> Option<Option<(bool, bool)>> {
    let mut control = Control::new();
    let mut message = empty_message();
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = control.bytes.len();
    // SAFETY: the message points to a control buffer with its true length, which outlives the call and is borrowed by
    // nobody else; it has no name and no vector.
    let received = unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    if received < 0 {
        return None;
    }
    control.length = message.msg_controllen.min(control.bytes.len());
    let mut errors = control.messages().filter_map(|(level, kind, data)| match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            Some((is_passing(data)?, is_of_path(data)))
        }
        _ => None,
    });
    Some(errors.next())
}

/// Whether a `sock_extended_err` tells of an ICMP message.
fn is_of_path(error: &[u8]) -> bool {
    let origin = error.get(4).copied();
    origin
        .is_some_and(|origin| [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6].contains(&origin))
}

/// Whether the error of a `sock_extended_err` (linux/errqueue.h) is one that the kernel keeps from a connected socket
/// without the option: a host or net that can't be reached now, a packet that went round too long.
fn is_passing(error: &[u8]) -> Option<bool> {
    let [_, _, _, _, origin, kind, code, ..] = *error else { return None };
    Some(match (origin, kind) {
        (libc::SO_EE_ORIGIN_ICMP, 3) => matches!(code, 0 | 1 | 5 | 11 | 12),
        (libc::SO_EE_ORIGIN_ICMP, 11) | (libc::SO_EE_ORIGIN_ICMP6, 3) => true,
        (libc::SO_EE_ORIGIN_ICMP6, 1) => matches!(code, 0 | 2 | 3),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_port_that_is_closed_is_no_passing_error_and_leaves_the_queue_empty() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(closed) = UdpSocket::bind(address) else { continue };
            let socket = UdpSocket::bind(address).unwrap();
            tell_refusals(socket.as_fd(), address.starts_with('[')).unwrap();
            socket.connect(closed.local_addr().unwrap()).unwrap();
            drop(closed);
            socket.send(&[1]).unwrap();
            assert_eq!(
                socket.recv(&mut [0; 1]).unwrap_err().kind(),
                io::ErrorKind::ConnectionRefused
            );
            assert!(!only_passing_errors(socket.as_fd()));
            assert_eq!(take_error(socket.as_fd()), None);
            assert!(!take_path_errors(socket.as_fd()));
            socket.send(&[1]).unwrap();
            assert!(socket.recv(&mut [0; 1]).is_err());
            assert!(take_path_errors(socket.as_fd()));
        }
    }

    #[test]
    fn errors_that_pass_are_those_that_a_plain_socket_is_not_told_of() {
        let entry = |origin, kind, code| is_passing(&[0, 0, 0, 0, origin, kind, code, 0]).unwrap();
        let (v4, v6) = (libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6);
        for (passing, origin, kind, code) in [
            (true, v4, 3, 1),
            (false, v4, 3, 3),
            (false, v4, 3, 10),
            (true, v4, 11, 0),
            (true, v6, 1, 3),
            (false, v6, 1, 4),
            (true, v6, 3, 0),
            (false, libc::SO_EE_ORIGIN_LOCAL, 0, 0),
        ] {
            assert_eq!(entry(origin, kind, code), passing, "{origin} {kind} {code}");
        }
        assert_eq!(is_passing(&[0; 4]), None);
    }
}
