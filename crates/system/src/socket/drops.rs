//! Datagrams that a socket dropped because its buffer was full.

use std::os::fd::BorrowedFd;

use super::option::read_option;

/// Index of the drop counter in SO_MEMINFO (SK_MEMINFO_DROPS, linux/sock_diag.h).
const DROPS_INDEX: usize = 8;

/// Indices of what stands in the send buffer, and of its size (SK_MEMINFO_WMEM_ALLOC, SK_MEMINFO_SNDBUF).
const SEND_INDICES: [usize; 2] = [2, 3];

/// How full the send buffer is, from 0 to 1: packets that the interface has not taken. `None` where this kernel doesn't
/// tell.
pub fn send_buffer_ratio(socket: BorrowedFd<'_>) -> Option<f64> {
    let mut values = [0_u8; 4 * (DROPS_INDEX + 1)];
    let length = read_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values).ok()?;
    let value = |index: usize| {
        let bytes = values.get(..length)?.get(4 * index..)?.first_chunk().copied()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let [held, size] = SEND_INDICES.map(value);
    Some((f64::from(held?) / f64::from(size?.max(1))).min(1.0))
}

/// Datagrams dropped by the socket since it was opened: the counter that SO_RXQ_OVFL and
/// /proc/net/udp show. `None` where this kernel doesn't tell.
pub fn socket_drops(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut values = [0_u8; 4 * (DROPS_INDEX + 1)];
    let length = read_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values).ok()?;
    let drops = values.get(4 * DROPS_INDEX..length)?;
    Some(u64::from(u32::from_ne_bytes(drops.try_into().ok()?)))
}
