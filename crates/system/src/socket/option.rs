//! Socket options as bytes, and those of them that need nothing more.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Reads a socket option; returns how many bytes the kernel wrote.
pub(super) fn read_option(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    into: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(into.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the pointer and `length` describe `into`, which outlives the call; the descriptor is
    // borrowed, so it is open.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &raw mut length)
    };
    if result == 0 { Ok(length as usize) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn set_option(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: i32,
) -> io::Result<()> {
    write_option(socket, level, name, &value.to_ne_bytes())
}

/// Sets a socket option to bytes.
fn write_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the pointer and `length` describe `value`, which outlives the call; the descriptor is
    // borrowed, so it is open.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the kernel cut what is sent into datagrams of `segment_bytes` (UDP_SEGMENT, udp(7)), or with
/// 0 leave all as it is.
pub fn set_send_segment(socket: BorrowedFd<'_>, segment_bytes: u16) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, i32::from(segment_bytes))
}

/// Makes bind(2) with port 0 leave the port to connect(2) (IP_BIND_ADDRESS_NO_PORT, ip(7)).
pub(super) fn bind_address_only(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Lets the kernel hand over several datagrams of one size as one (UDP_GRO, udp(7)).
pub fn enable_receive_offload(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Has a connection of few segments send again what isn't acknowledged every second at least, and its first six times
/// without waiting ever longer, as far as the kernel can (TCP_THIN_LINEAR_TIMEOUTS; from Linux 6.15 on TCP_RTO_MAX_MS,
/// tcp(7)): a path that was dark for seconds is found to work again within one.
pub fn retry_steadily(socket: BorrowedFd<'_>) {
    let _later_at_worst = set_option(socket, libc::SOL_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS, 1);
    let _later_at_worst = set_option(socket, libc::SOL_TCP, TCP_RTO_MAX_MS, LONGEST_RTO_MS);
}

/// linux/tcp.h; the kernel takes no shorter time.
const TCP_RTO_MAX_MS: i32 = 44;
const LONGEST_RTO_MS: i32 = 1_000;

/// Whether a listener hands a connection over only when its first bytes have come (TCP_DEFER_ACCEPT,
/// tcp(7)); one that stays silent for a second is handed over all the same.
pub fn set_defer_accept(listener: BorrowedFd<'_>, defer: bool) -> io::Result<()> {
    set_option(listener, libc::SOL_TCP, libc::TCP_DEFER_ACCEPT, i32::from(defer))
}

/// Makes connect(2) wait for the first bytes, and send them with it where the peer has let us (Fast
/// Open: TCP_FASTOPEN_CONNECT, tcp(7); RFC 7413).
pub fn set_fast_open(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
}

/// Takes bytes that come with a connection, of so many that wait for their handshake (TCP_FASTOPEN,
/// tcp(7)).
pub fn accept_fast_open(listener: BorrowedFd<'_>, waiting: i32) -> io::Result<()> {
    set_option(listener, libc::SOL_TCP, libc::TCP_FASTOPEN, waiting)
}

/// Lets the kernel choose the sizes of a socket's buffers, which one that was set keeps otherwise (SO_BUF_LOCK:
/// asm-generic/socket.h, since Linux 5.14).
pub(super) fn unlock_buffers(socket: BorrowedFd<'_>) -> io::Result<()> {
    const SO_BUF_LOCK: i32 = 72;
    set_option(socket, libc::SOL_SOCKET, SO_BUF_LOCK, 0)
}

/// SO_DEBUG, socket(7).
pub fn set_debug(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_DEBUG, 1)
}

/// Leases an IPv6 flow label towards an address, and lets the socket send what its connect(2) says
/// (IPV6_FLOWLABEL_MGR with `struct in6_flowlabel_req`, IPV6_FLOWINFO_SEND: linux/in6.h).
pub fn lease_flow_label(socket: BorrowedFd<'_>, towards: Ipv6Addr, label: u32) -> io::Result<()> {
    const IPV6_FLOWLABEL_MGR: i32 = 32;
    const IPV6_FLOWINFO_SEND: i32 = 33;
    const CREATE: u16 = 1;
    const SHARED_BY_ANY: u8 = 255;
    let mut request = [0_u8; 32];
    request[..16].copy_from_slice(&towards.octets());
    request[16..20].copy_from_slice(&label.to_be_bytes());
    // The action at 20 stays zero: get.
    request[21] = SHARED_BY_ANY;
    request[22..24].copy_from_slice(&CREATE.to_ne_bytes());
    write_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request)?;
    set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)
}

/// Whether a connection is one of MPTCP: an end that doesn't speak it, or a box on the way, makes it
/// plain TCP, whose sockets don't know the option (MPTCP_INFO, linux/mptcp.h).
pub fn is_multipath(socket: BorrowedFd<'_>) -> bool {
    const SOL_MPTCP: i32 = 284;
    const MPTCP_INFO: i32 = 1;
    read_option(socket, SOL_MPTCP, MPTCP_INFO, &mut [0; 64]).is_ok()
}

/// Sends to hosts of directly connected networks only (SO_DONTROUTE, socket(7)).
pub fn set_unrouted(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_DONTROUTE, 1)
}

/// Never lets a packet be fragmented (IP_MTU_DISCOVER, ip(7), and IPv6's, ipv6(7)).
pub fn set_unfragmented(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    if v6 {
        let value = libc::IPV6_PMTUDISC_DO;
        return set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, value);
    }
    set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)
}

/// Makes the kernel keep a socket to a rate (SO_MAX_PACING_RATE, socket(7)). Kernels before 4.20 take
/// 32 bits: there a rate beyond 34 Gbit/s is none.
pub fn set_pacing_rate(socket: BorrowedFd<'_>, bps: u64) -> io::Result<()> {
    let bytes_per_s = bps / 8;
    let old = u32::try_from(bytes_per_s).unwrap_or(u32::MAX);
    write_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())?;
    // An old kernel has read the first half of the number.
    let mut kept = [0; 8];
    match read_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut kept)? {
        8 => Ok(()),
        _ => write_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &old.to_ne_bytes()),
    }
}
