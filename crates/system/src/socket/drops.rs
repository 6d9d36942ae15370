//! Datagrams that a socket dropped because its buffer was full.

use std::os::fd::BorrowedFd;

use super::option::read_option;

/// Index of the drop counter in SO_MEMINFO (SK_MEMINFO_DROPS, linux/sock_diag.h).
const DROPS_INDEX: usize = 8;

/// Datagrams dropped by the socket since it was opened: the counter that SO_RXQ_OVFL and
/// /proc/net/udp show. `None` where this kernel doesn't tell.
pub fn socket_drops(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut values = [0_u8; 4 * (DROPS_INDEX + 1)];
    let length = read_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values).ok()?;
    let drops = values.get(4 * DROPS_INDEX..length)?;
    Some(u64::from(u32::from_ne_bytes(drops.try_into().ok()?)))
}
