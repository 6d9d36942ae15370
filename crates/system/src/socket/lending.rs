//! Memory that is lent to the kernel for sending (MSG_ZEROCOPY, networking/msg_zerocopy in the
//! kernel's documentation).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::option::set_option;

/// Where a message of the error queue is about lent memory (linux/errqueue.h).
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
/// The kernel copied the bytes after all (linux/errqueue.h).
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

/// Sends that the kernel is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    pub sends: u64,
    /// Whether their bytes were copied after all.
    pub copied: bool,
}

/// Lets sends on this socket lend their memory.
pub fn enable_lending(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Takes one word of the kernel that it is done with sends; fails with `WouldBlock` where there is
/// none.
pub fn take_returned(socket: BorrowedFd<'_>) -> io::Result<Returned> {
    let mut control = [0_u8; 128];
    // SAFETY: a message header of all zero bytes is valid: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len() as _;
    // SAFETY: the header's only pointer is to `control`, with its length; both outlive the call,
    // and the descriptor is borrowed, so it is open.
    let received = unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    let length = (message.msg_controllen as usize).min(control.len());
    // Another message of the error queue is about no send.
    Ok(decode_returned(&control[..length]).unwrap_or(Returned { sends: 0, copied: false }))
}

/// Reads a `struct sock_extended_err` behind its `struct cmsghdr`: error (4), origin (1), type (1),
/// code (1), padding (1), first and last number of the sends (4 each; they wrap).
fn decode_returned(control: &[u8]) -> Option<Returned> {
    let body = control.get(HEADER_BYTES..HEADER_BYTES + 16)?;
    let number_at = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    if body.get(4) != Some(&SO_EE_ORIGIN_ZEROCOPY) {
        return None;
    }
    let (first, last) = (number_at(8)?, number_at(12)?);
    Some(Returned {
        sends: u64::from(last.wrapping_sub(first)) + 1,
        copied: body.get(6) == Some(&SO_EE_CODE_ZEROCOPY_COPIED),
    })
}
