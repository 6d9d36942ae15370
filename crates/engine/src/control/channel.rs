//! What carries the bytes of a control connection, over a socket that doesn't block.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};

use crate::poll::poll_until;
use crate::waker::Waker;

/// Bytes taken at once, so that a peer which says much doesn't keep others waiting.
pub(super) const READ_BYTES: usize = 64 << 10;

/// What reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The other end may say more.
    Open,
    /// More has arrived than was taken at once.
    More,
    /// It has closed its direction of the connection.
    Ended,
}

/// A control connection as a stream of bytes.
pub(crate) trait Channel: AsFd {
    /// Appends what has arrived to `into`.
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Reading>;

    /// Queues bytes for the other end.
    fn queue(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes what is queued, as far as the socket takes it.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether something is queued that the socket has not taken.
    fn has_unwritten(&self) -> bool;

    /// Says that nothing more will be queued.
    fn end(&mut self);
}

/// Waits until the channel is ready, one of the others is, the waker is used, or the time (monotonic, ns) has come.
/// `reads` says whether the channel is waited for that has nothing to write.
pub(crate) fn wait(
    channel: &impl Channel,
    reads: bool,
    waker: Option<&Waker>,
    others: &[PollFd<'_>],
    until_ns: u64,
) {
    let mut flags = if reads { PollFlags::IN } else { PollFlags::empty() };
    if channel.has_unwritten() {
        flags |= PollFlags::OUT;
    }
    let channel = (!flags.is_empty()).then(|| PollFd::from_borrowed_fd(channel.as_fd(), flags));
    let waker_polled = waker.map(|waker| PollFd::new(waker, PollFlags::IN));
    let mut polled: Vec<PollFd<'_>> = channel.into_iter().chain(waker_polled).collect();
    polled.extend(others.iter().cloned());
    poll_until(&mut polled, until_ns);
    if let Some(waker) = waker {
        waker.silence();
    }
}
