//! How flows come to a shard, and how it is woken.
//!
//! A shard in the shared file table takes its flows from a channel, socket and all, beside a waker.
//! One apart takes a socket as a descriptor over a pair of Unix sockets (SCM_RIGHTS, unix(7)), and
//! the rest of the flow, of the same number, from the channel; a shorter message wakes it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};
use socket2::Socket;

use crate::flow::{Drive, Fresh};
use crate::waker::Waker;

/// Descriptors on their way are waited for so long: the server's other clients wait meanwhile.
const IN_FLIGHT_LIMIT: Duration = Duration::from_millis(500);
const IN_FLIGHT_PAUSE: Duration = Duration::from_millis(1);

/// What a socket that is handed over is for.
pub(crate) enum Parcel {
    Flow(Fresh),
    /// One of the connections that come and go, with its number.
    Connection(u32),
}

impl Parcel {
    fn number(&self) -> u32 {
        match self {
            Self::Flow(flow) => flow.shared.number,
            Self::Connection(number) => *number,
        }
    }

    fn open(self, socket: Arc<Socket>) -> Coming {
        match self {
            Self::Flow(flow) => Coming::Flow(flow.begin(socket)),
            Self::Connection(number) => Coming::Connection(number, socket),
        }
    }
}

/// The conductor's end.
pub(super) enum Outlet {
    /// To a shard in the shared table.
    Shared { inbox: Sender<(Parcel, Arc<Socket>)>, waker: Arc<Waker> },
    /// To a shard apart.
    Apart { inbox: Sender<Parcel>, link: OwnedFd },
}

impl Outlet {
    /// Hands a socket over; fails where the shard has ended.
    pub(super) fn send(&self, parcel: Parcel, socket: Arc<Socket>) -> io::Result<()> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        match self {
            Self::Shared { inbox, waker } => {
                inbox.send((parcel, socket)).map_err(|_| ended())?;
                waker.wake();
                Ok(())
            }
            Self::Apart { inbox, link } => {
                let number = parcel.number().to_le_bytes();
                inbox.send(parcel).map_err(|_| ended())?;
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                let rights = [socket.as_fd()];
                control.push(SendAncillaryMessage::ScmRights(&rights));
                let message = [IoSlice::new(&number)];
                // Waits where the shard has not yet taken what it was sent before.
                send_when_counted(|| sendmsg(link, &message, &mut control, SendFlags::NOSIGNAL))
            }
        }
    }

    pub(super) fn wake(&self) {
        match self {
            Self::Shared { waker, .. } => waker.wake(),
            Self::Apart { link, .. } => {
                // Fails only when so much is unread that one more makes no difference.
                let _awake_anyway = send(link, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
        }
    }
}

/// Sends a message with a descriptor. For an ordinary user the kernel has no more of them on their way than may be
/// open (ETOOMANYREFS, unix(7)), in all programs of that user together: then receivers are given time to take theirs.
fn send_when_counted(mut message: impl FnMut() -> Result<usize, Errno>) -> io::Result<()> {
    let deadline = Instant::now() + IN_FLIGHT_LIMIT;
    loop {
        match rustix::io::retry_on_intr(&mut message) {
            Err(Errno::TOOMANYREFS) if Instant::now() < deadline => thread::sleep(IN_FLIGHT_PAUSE),
            outcome => return outcome.map(|_length| ()).map_err(io::Error::from),
        }
    }
}

/// The shard's end.
pub(crate) enum Inlet {
    /// In the shared table.
    Shared { inbox: Receiver<(Parcel, Arc<Socket>)>, waker: Arc<Waker> },
    /// Apart, with what it accepts from.
    Apart { inbox: Receiver<Parcel>, link: OwnedFd, listeners: Vec<Arc<Socket>> },
}

/// What has come.
pub(crate) enum Coming {
    Flow(Box<dyn Drive>),
    /// One of the connections that come and go, with its number.
    Connection(u32, Arc<Socket>),
    /// Nothing for now.
    Nothing,
    /// Nothing more, ever.
    Closed,
}

impl Inlet {
    /// Takes a flow if one has come.
    pub(crate) fn take(&self) -> Coming {
        match self {
            Self::Shared { inbox, .. } => match inbox.try_recv() {
                Ok((parcel, socket)) => parcel.open(socket),
                Err(TryRecvError::Empty) => Coming::Nothing,
                Err(TryRecvError::Disconnected) => Coming::Closed,
            },
            Self::Apart { inbox, link, .. } => take_descriptor(link, inbox),
        }
    }

    /// Waits for a flow; `None` where none can come any more.
    pub(super) fn wait(&self) -> Option<Box<dyn Drive>> {
        match self {
            Self::Shared { inbox, .. } => {
                let (parcel, socket) = inbox.recv().ok()?;
                match parcel.open(socket) {
                    Coming::Flow(flow) => Some(flow),
                    _ => None,
                }
            }
            Self::Apart { .. } => None,
        }
    }

    /// Whether its shard has a file table of its own.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self, Self::Apart { .. })
    }

    /// Where it is apart: the listeners in its shard's file table.
    pub(crate) fn listeners(&self) -> &[Arc<Socket>] {
        match self {
            Self::Shared { .. } => &[],
            Self::Apart { listeners, .. } => listeners,
        }
    }

    /// Takes what only wakes; a connection that comes meanwhile is closed.
    pub(crate) fn discard(&self) {
        while !matches!(self.take(), Coming::Nothing | Coming::Closed) {}
    }

    /// Makes it ready for the next waking.
    pub(crate) fn silence(&self) {
        if let Self::Shared { waker, .. } = self {
            waker.silence();
        }
    }
}

impl AsFd for Inlet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Shared { waker, .. } => waker.as_fd(),
            Self::Apart { link, .. } => link.as_fd(),
        }
    }
}

fn take_descriptor(link: &OwnedFd, inbox: &Receiver<Parcel>) -> Coming {
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut number = [0; 4];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(link, &mut [IoSliceMut::new(&mut number)], &mut control, flags) {
            Ok(message) if message.bytes == 0 => return Coming::Closed,
            // The shard was woken; perhaps by a flow that has come.
            Ok(message) if message.bytes < number.len() => continue,
            Ok(_) => {}
            Err(Errno::AGAIN) => return Coming::Nothing,
            Err(Errno::INTR) => continue,
            Err(_) => return Coming::Closed,
        }
        // The parcel was sent before its descriptor. One whose descriptor could not be sent is skipped.
        let number = u32::from_le_bytes(number);
        let Some(parcel) = inbox.try_iter().find(|parcel| parcel.number() == number) else {
            return Coming::Closed;
        };
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
            _ => None,
        });
        match descriptor {
            Some(descriptor) => return parcel.open(Arc::new(Socket::from(descriptor))),
            // The kernel had no room for it: a flow never comes, which its end's report says, and a connection
            // that comes and goes fails.
            None => continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_waits_for_others_on_their_way_and_not_for_ever() {
        let mut answers = [Errno::TOOMANYREFS, Errno::INTR, Errno::TOOMANYREFS].into_iter();
        send_when_counted(|| answers.next().map_or(Ok(4), Err)).unwrap();
        assert_eq!(answers.next(), None);
        let error = send_when_counted(|| Err(Errno::TOOMANYREFS)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ETOOMANYREFS));
    }
}
