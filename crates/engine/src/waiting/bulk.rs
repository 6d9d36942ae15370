//! How a receiver in bulk waits.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::Socket;

use super::flood::FloodRests;
use super::{Awaited, Backoff, Look, Peer};

/// A receiver that got less than this last does not receive in bulk.
const BULK_BYTES: usize = 4 << 10;

/// How a receiver in bulk waits on a socket that blocks.
pub(crate) struct BulkWait {
    look: Look,
    backoff: Backoff,
    /// For datagrams, where the socket has room for what comes during rests.
    flood: Option<FloodRests>,
    in_bulk: bool,
}

impl BulkWait {
    fn of(socket: &Socket, awaited: Awaited) -> Option<Self> {
        let blocks = fcntl_getfl(socket.as_fd()).is_ok_and(|how| !how.contains(OFlags::NONBLOCK));
        blocks.then(|| Self {
            look: Look::new(),
            backoff: Backoff::new(awaited),
            flood: None,
            in_bulk: false,
        })
    }

    /// For a connection; `None` where its socket doesn't block, as the thread does other things meanwhile.
    pub(crate) fn of_stream(socket: &Socket) -> Option<Self> {
        Self::of(socket, Awaited::Stream)
    }

    /// The same for datagrams, of which some gather while they come without end.
    pub(crate) fn of_datagrams(socket: &Socket) -> Option<Self> {
        let wait = Self::of(socket, Awaited::Datagrams)?;
        Some(Self { flood: FloodRests::of(socket), ..wait })
    }

    /// Whether the last receive brought much.
    #[inline]
    pub(crate) fn is_in_bulk(&self) -> bool {
        self.in_bulk
    }

    /// Receives, polling for a moment where nothing has come, and then as the socket does.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
        let received = self.receive_awake(socket, into);
        let received = received.unwrap_or_else(|| receive(socket, into, RecvFlags::empty()));
        self.in_bulk = received.is_ok_and(|length| length >= BULK_BYTES);
        Ok(received?)
    }

    /// The same, of datagrams of one size.
    #[inline]
    pub(crate) fn receive_train(
        &mut self,
        socket: &Socket,
        into: &mut [u8],
        unit_bytes: usize,
    ) -> io::Result<usize> {
        let length = self.receive(socket, into)?;
        if let Some(flood) = &mut self.flood {
            flood.record_train(length, unit_bytes);
        }
        Ok(length)
    }

    /// Receives what has come or comes in a moment; `None`: it is time to sleep.
    #[inline]
    fn receive_awake(&mut self, socket: &Socket, into: &mut [u8]) -> Option<Result<usize, Errno>> {
        if !self.in_bulk {
            return None;
        }
        let flood = self.flood.as_ref();
        let came = self.look.wait_and(
            &mut self.backoff,
            || Peer::of(socket),
            || flood.into_iter().for_each(FloodRests::wait),
            || receive(socket, into, RecvFlags::DONTWAIT),
        );
        if let Some(flood) = &mut self.flood {
            flood.record_wait(came.is_some());
        }
        came
    }
}

#[inline]
fn receive(socket: &Socket, into: &mut [u8], how: RecvFlags) -> Result<usize, Errno> {
    rustix::net::recv(socket.as_fd(), into, how).map(|(length, _)| length)
}

#[cfg(test)]
mod tests;
