//! Received bytes that are discarded.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Lets the kernel drop up to `most_bytes` of what a TCP socket has received, unread (MSG_TRUNC,
/// tcp(7)). Says how many; 0 when the peer has finished.
pub fn discard(socket: BorrowedFd<'_>, most_bytes: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket copies nothing, so that the pointer is never followed;
    // were it, the kernel would refuse a null pointer with EFAULT. The descriptor is borrowed, so
    // it is open.
    let dropped = unsafe {
        libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most_bytes, libc::MSG_TRUNC)
    };
    usize::try_from(dropped).map_err(|_| io::Error::last_os_error())
}
