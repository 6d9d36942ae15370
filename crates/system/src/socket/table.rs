//! File tables of threads.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::thread::UnshareFlags;

/// Standard input, output and error: whatever the library prints must not land in a socket.
const STANDARD: RawFd = 3;

/// Gives the calling thread a file table of its own (unshare(2) with CLONE_FILES) that holds
/// standard input, output and error and these descriptors, nothing else: what others have open
/// can be closed by them alone, and doesn't live on in a copy. Returns the thread's own
/// descriptors, which are to be dropped in this thread only.
///
/// The caller must see to it that another thread drops its clones of `keep` last, or these clones'
/// numbers stay open in the other table.
pub fn own_table(keep: Vec<Arc<OwnedFd>>) -> io::Result<Vec<OwnedFd>> {
    // SAFETY: this thread gets a copy of the table, so every number that it knows still names what
    // it named. Closing a number closes it in one of the tables only, which is what this
    // function is for and what its callers look after.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }?;
    let mut numbers: Vec<RawFd> =
        keep.iter().map(|descriptor| descriptor.as_fd().as_raw_fd()).collect();
    // The originals belong to the other table; here the numbers alone count.
    drop(keep);
    let order = numbers.clone();
    numbers.sort_unstable();
    let mut from = STANDARD;
    for number in numbers {
        close_between(from, number)?;
        from = from.max(number.saturating_add(1));
    }
    close_between(from, RawFd::MAX)?;
    // SAFETY: each number is open in this thread's table, because it was kept open in the table
    // that was copied, and it has no other owner in this one.
    Ok(order.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }).collect())
}

/// Closes all numbers from `first` on that are less than `end`.
fn close_between(first: RawFd, end: RawFd) -> io::Result<()> {
    if first >= end {
        return Ok(());
    }
    let (first, last) = (first.unsigned_abs(), end.unsigned_abs() - 1);
    // SAFETY: the call touches no memory. The descriptors that it closes are this thread's copies,
    // which nothing owns (see `own_table`).
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
