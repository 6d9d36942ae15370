//! UDP packets with what goes beside their bytes: the length of a train's segments, the class
//! (DSCP and ECN), and the local address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use bytes::BytesMut;
use socket2::{SockAddr, SockAddrStorage};

use super::option::{read_option, set_option};

/// The most that one receive brings: a train of datagrams (GRO).
pub const LONGEST_TRAIN_BYTES: usize = 64 << 10;
/// Bytes of a control message's header on Linux: a length as long as an address, two numbers.
const HEADER_BYTES: usize = size_of::<usize>() + 8;
const ALIGNMENT: usize = size_of::<usize>();

/// A datagram, or a train of them, to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Where to; `None` on a connected socket.
    pub to: Option<SocketAddr>,
    /// From which of this machine's addresses; `None`: the kernel's choice.
    pub from: Option<IpAddr>,
    /// The whole byte that was once the type of service: DSCP above, ECN in the lowest two bits.
    pub class: u8,
    /// Whether the packet goes out as IPv4, over whatever socket.
    pub ipv4: bool,
    /// The length of each datagram but the last, where there are several.
    pub segment_bytes: Option<u16>,
    /// What is sent.
    pub bytes: &'a [u8],
}

/// What came with a receive.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// `None` on a connected socket.
    pub from: Option<SocketAddr>,
    /// The local address it was sent to, where the socket tells.
    pub to: Option<IpAddr>,
    /// The ECN bits.
    pub ecn: u8,
    /// The length of each datagram but the last.
    pub segment_bytes: usize,
    pub length: usize,
}

#[repr(align(8))]
pub(super) struct Control {
    pub(super) bytes: [u8; 128],
    pub(super) length: usize,
}

impl Control {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; 128], length: 0 }
    }

    /// Appends a message in the kernel's layout (cmsg(3)).
    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let at = self.length;
        let total = HEADER_BYTES + data.len();
        let Some(space) = self.bytes.get_mut(at..at + total.next_multiple_of(ALIGNMENT)) else {
            return;
        };
        space[..ALIGNMENT].copy_from_slice(&total.to_ne_bytes());
        space[ALIGNMENT..ALIGNMENT + 4].copy_from_slice(&level.to_ne_bytes());
        space[ALIGNMENT + 4..HEADER_BYTES].copy_from_slice(&kind.to_ne_bytes());
        space[HEADER_BYTES..total].copy_from_slice(data);
        self.length += space.len();
    }

    /// The length of each datagram but the last, where the kernel merged several (UDP_GRO).
    pub(super) fn gro_segment_bytes(&self) -> Option<usize> {
        let (_, _, data) = self
            .messages()
            .find(|(level, kind, _)| (*level, *kind) == (libc::SOL_UDP, libc::UDP_GRO))?;
        let bytes = i32::from_ne_bytes(*data.first_chunk()?);
        usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)
    }

    /// The messages: level, kind, data.
    pub(super) fn messages(&self) -> impl Iterator<Item = (i32, i32, &[u8])> {
        let mut rest = self.bytes.get(..self.length).unwrap_or_default();
        std::iter::from_fn(move || {
            let (header, data) = rest.split_at_checked(HEADER_BYTES)?;
            let (length, numbers) = header.split_at(ALIGNMENT);
            let total = usize::from_ne_bytes(length.try_into().ok()?);
            let level = i32::from_ne_bytes(numbers[..4].try_into().ok()?);
            let kind = i32::from_ne_bytes(numbers[4..].try_into().ok()?);
            let data = data.get(..total.checked_sub(HEADER_BYTES)?)?;
            rest = rest.get(total.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
            Some((level, kind, data))
        })
    }
}

/// Lets a socket tell the class of what it receives, and, where its address isn't one alone, which
/// address that was sent to.
pub fn enable_packet_facts(socket: BorrowedFd<'_>, ipv6: bool, tell_address: bool) {
    // What a kernel can't tell is absent later.
    let ask = |level, name| {
        let _untold = set_option(socket, level, name, 1);
    };
    ask(libc::IPPROTO_IP, libc::IP_RECVTOS);
    if ipv6 {
        ask(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS);
    }
    if tell_address {
        ask(libc::IPPROTO_IP, libc::IP_PKTINFO);
        if ipv6 {
            ask(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO);
        }
    }
}

/// Keeps packets whole: what doesn't fit is refused or dropped, and never sent in fragments
/// (IP_MTU_DISCOVER, ip(7); the kernel's own guess of the path's MTU is passed over).
pub fn forbid_fragments(socket: BorrowedFd<'_>, ipv6: bool) {
    let probe = libc::IP_PMTUDISC_PROBE;
    let _fragments_at_worst = set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, probe);
    if ipv6 {
        let _fragments_at_worst =
            set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe);
    }
}

/// The longest IP packet that a connected socket's route carries, as far as the kernel knows (IP_MTU,
/// ip(7); IPV6_MTU, ipv6(7)).
///
/// # Errors
///
/// Where the socket isn't connected, or has lost its route.
pub fn route_mtu_bytes(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<u32> {
    let (level, name) =
        if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_MTU) } else { (libc::IPPROTO_IP, libc::IP_MTU) };
    let mut bytes = [0; 4];
    match read_option(socket, level, name, &mut bytes)? {
        4 => Ok(u32::from_ne_bytes(bytes)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends one datagram, or several with one call (sendmsg(2), UDP_SEGMENT of udp(7)).
pub fn send_packets(socket: BorrowedFd<'_>, out: &Outgoing<'_>) -> io::Result<()> {
    let mut control = Control::new();
    if out.class != 0 {
        let class = i32::from(out.class).to_ne_bytes();
        if out.ipv4 {
            control.push(libc::IPPROTO_IP, libc::IP_TOS, &class);
        } else {
            control.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class);
        }
    }
    if let Some(bytes) = out.segment_bytes {
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
    }
    match out.from {
        // in_pktinfo: interface, address to send from, unused.
        Some(IpAddr::V4(from)) => {
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&from.octets());
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        // in6_pktinfo: address, interface.
        Some(IpAddr::V6(from)) => {
            let mut info = [0; 20];
            info[..16].copy_from_slice(&from.octets());
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
        None => {}
    }
    let address = out.to.map(SockAddr::from);
    let mut vector =
        libc::iovec { iov_base: out.bytes.as_ptr().cast_mut().cast(), iov_len: out.bytes.len() };
    let mut message = empty_message();
    if let Some(address) = &address {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = address.len();
    }
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    if control.length > 0 {
        message.msg_control = control.bytes.as_mut_ptr().cast();
        message.msg_controllen = control.length;
    }
    // SAFETY: the message points to an address, a vector over a borrowed slice and a control buffer
    // with their true lengths; all outlive the call, and the kernel only reads them.
    let sent = unsafe {
        libc::sendmsg(
            socket.as_raw_fd(),
            &raw const message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives one datagram, or a train that the kernel merged (UDP_GRO), behind what `into` has.
pub fn receive_packets(socket: BorrowedFd<'_>, into: &mut BytesMut) -> io::Result<Incoming> {
    into.reserve(LONGEST_TRAIN_BYTES);
    let mut control = Control::new();
    let space = into.spare_capacity_mut();
    let mut vector = libc::iovec { iov_base: space.as_mut_ptr().cast(), iov_len: space.len() };
    let mut message = empty_message();
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.as_mut_ptr().cast();
    message.msg_controllen = control.bytes.len();
    let receive = |name: *mut SockAddrStorage, name_bytes: *mut libc::socklen_t| {
        message.msg_name = name.cast();
        // SAFETY: `try_init` passes a pointer to the length of the storage that it passes.
        message.msg_namelen = unsafe { *name_bytes };
        // SAFETY: the message points to an address, a vector over spare memory and a control buffer
        // with their true lengths; all outlive the call and are borrowed by nobody else.
        let received =
            unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        // SAFETY: as above; the kernel has said how long the address is that it wrote.
        unsafe { *name_bytes = message.msg_namelen };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    };
    // SAFETY: the kernel writes an address into the storage, and its true length is handed back.
    let (length, from) = unsafe { SockAddr::try_init(receive) }?;
    control.length = message.msg_controllen.min(control.bytes.len());
    // SAFETY: the kernel has written `length` bytes, no more than the spare capacity has, right
    // behind the bytes that were there.
    unsafe { into.set_len(into.len() + length) };
    Ok(facts(&control, from.as_socket(), length))
}

fn facts(control: &Control, from: Option<SocketAddr>, length: usize) -> Incoming {
    let segment_bytes = control.gro_segment_bytes().unwrap_or(length.max(1));
    let mut incoming = Incoming { from, to: None, ecn: 0, segment_bytes, length };
    for (level, kind, data) in control.messages() {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                let byte = if cfg!(target_endian = "big") { data.last() } else { data.first() };
                incoming.ecn = byte.copied().unwrap_or(0) & 0b11;
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let address: Option<&[u8; 4]> = data.last_chunk();
                incoming.to = address.map(|address| Ipv4Addr::from(*address).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let address: Option<&[u8; 16]> = data.first_chunk();
                incoming.to = address.map(|address| Ipv6Addr::from(*address).to_canonical());
            }
            _ => {}
        }
    }
    incoming
}

pub(super) fn empty_message() -> libc::msghdr {
    // SAFETY: all zeros is a valid value of this plain C structure: no name, no bytes, no control.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::enable_receive_offload;
    use socket2::{Domain, Socket, Type};
    use std::os::fd::AsFd;

    fn bound(address: &str) -> (Socket, SocketAddr) {
        let address: SocketAddr = address.parse().unwrap();
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
        socket.bind(&address.into()).unwrap();
        enable_packet_facts(socket.as_fd(), address.is_ipv6(), true);
        let bound = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, bound)
    }

    fn receive(socket: &Socket, into: &mut BytesMut) -> Incoming {
        socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut polled = [rustix::event::PollFd::new(socket, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut polled, None).unwrap();
        receive_packets(socket.as_fd(), into).unwrap()
    }

    #[test]
    fn a_packet_arrives_with_its_class_and_addresses() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let ((near, from), (far, to)) = (bound(address), bound(address));
            let out = Outgoing {
                to: Some(to),
                from: Some(from.ip()),
                class: 0b1011_1010,
                ipv4: to.is_ipv4(),
                segment_bytes: None,
                bytes: b"one datagram",
            };
            send_packets(near.as_fd(), &out).unwrap();
            let mut into = BytesMut::new();
            let incoming = receive(&far, &mut into);
            assert_eq!(&into[..], b"one datagram");
            assert_eq!(incoming.from, Some(from));
            assert_eq!(incoming.to, Some(to.ip()));
            assert_eq!(incoming.ecn, 0b10);
            assert_eq!(incoming.segment_bytes, incoming.length);
        }
    }

    #[test]
    fn a_train_arrives_with_the_length_of_its_segments() {
        let ((near, _), (far, to)) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"));
        enable_receive_offload(far.as_fd()).unwrap();
        let bytes: Vec<u8> = (0..4100_u32).map(|n| n as u8).collect();
        let out = Outgoing {
            to: Some(to),
            from: None,
            class: 0,
            ipv4: true,
            segment_bytes: Some(1000),
            bytes: &bytes,
        };
        send_packets(near.as_fd(), &out).unwrap();
        let mut into = BytesMut::new();
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            into.clear();
            let incoming = receive(&far, &mut into);
            // Merged or not: no datagram is longer than its segment.
            assert!(incoming.segment_bytes <= 1000);
            received.extend_from_slice(&into[..incoming.length]);
        }
        assert_eq!(received, bytes);
    }
}
