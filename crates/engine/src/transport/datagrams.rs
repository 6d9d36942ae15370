//! What carries datagrams: a connected UDP socket, or a QUIC connection ([`super::quic`]).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use rustix::net::{RecvFlags, SendFlags};
use socket2::Socket;

use crate::socket::{
    Queues, enable_receive_offload, only_passing_errors, receive_batch, send_batch,
    set_send_segment, socket_drops, tell_refusals,
};
use crate::waiting::BulkWait;

/// The most datagrams of one call (UDP_MAX_SEGMENTS of newer kernels, linux/udp.h).
const MOST_SEGMENTS: usize = 128;
/// The same of every kernel that has UDP_SEGMENT.
pub(crate) const MOST_SEGMENTS_OF_OLD: usize = 64;
/// The most bytes of one call: an IPv4 datagram's payload, which the kernel cuts up.
const MOST_CALL_BYTES: usize = 65_507;

/// How many datagrams of a length may leave with one call.
pub(crate) fn most_of_one_call(unit_bytes: usize) -> usize {
    (MOST_CALL_BYTES / unit_bytes.max(1)).clamp(1, MOST_SEGMENTS)
}

/// A way for datagrams to one peer.
///
/// What can't go on now fails with `WouldBlock` and is tried again when there is word that it can;
/// where the socket blocks, it waits. An `UnexpectedEof` of a receive says that the peer has closed
/// the way in order.
pub(crate) trait DatagramPath {
    /// What its datagrams go over.
    fn socket(&self) -> &Socket;

    /// Whether datagrams of this length go through; `false`: not yet.
    ///
    /// # Errors
    ///
    /// Where they never will, with the reason.
    fn carries(&mut self, _bytes: usize) -> io::Result<bool> {
        Ok(true)
    }

    /// Makes ready to send datagrams of one length, up to so many at once; says how many it takes.
    fn begin_sending(&mut self, unit_bytes: usize, most: usize) -> usize;

    /// Sends datagrams that lie one behind the other, `unit_bytes` each; says how many were taken.
    fn send(&mut self, batch: &[u8], unit_bytes: usize) -> io::Result<usize>;

    /// After a failure: how many may leave at once by another way; `None`: there is none.
    fn adapt(&mut self, _error: &io::Error, _most: usize) -> Option<usize> {
        None
    }

    /// Whether none of the datagrams that were taken waits any more: each has left or was refused.
    fn is_flushed(&mut self) -> bool {
        true
    }

    /// How many datagrams were refused after they had been taken, each told once.
    fn take_refused(&mut self) -> u64 {
        0
    }

    /// Datagrams of the warm-up end here: refused ones of them are not told any more.
    fn end_sent_warm_up(&mut self) {}

    /// Makes ready to receive in bulk.
    fn begin_receiving(&mut self);

    /// Receives in bulk: has `look` see what came, datagrams of one length one behind the other.
    fn receive(
        &mut self,
        unit_bytes: usize,
        buffer: &mut [u8],
        look: impl FnMut(&[u8]),
    ) -> io::Result<()>;

    /// Receives one datagram; of one that is too long as much as fits.
    fn receive_one(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Whether datagrams leave in trains, and come so.
    fn offload(&self) -> (bool, bool);

    /// Whether a flow goes on after such a failure.
    fn outlives(&self, _error: &io::Error) -> bool {
        true
    }

    /// What is told at the end is told from here on.
    fn end_warm_up(&mut self);

    /// Datagrams that arrived and that its socket dropped; `None` where that isn't known.
    fn drops(&self) -> Option<u64>;

    /// What a QUIC connection says of its path.
    fn quic(&self) -> Option<QuicStatus> {
        None
    }

    /// Completes what is known of the socket by what the kernel doesn't know.
    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        facts
    }
}

/// A connected UDP socket.
pub(crate) struct Udp {
    socket: Arc<Socket>,
    /// Whether offload is wanted.
    offload: bool,
    /// Whether a send fails where a queue of this machine drops the datagram.
    tells_refusals: bool,
    /// Whether such a queue may stand before the peer: then datagrams that don't leave in trains leave one by one. Of
    /// several with one call the kernel doesn't say why it has taken fewer.
    is_queued: bool,
    sends_trains: bool,
    receives_trains: bool,
    wait: Option<BulkWait>,
    drops_in_warm_up: u64,
}

impl Udp {
    /// `offload`: use segmentation offload where the kernel has it.
    pub(crate) fn new(socket: Arc<Socket>, offload: bool) -> Self {
        Self {
            socket,
            offload,
            tells_refusals: false,
            is_queued: false,
            sends_trains: false,
            receives_trains: false,
            wait: None,
            drops_in_warm_up: 0,
        }
    }

    /// Has its sends fail where a queue of this machine drops the datagram.
    pub(crate) fn telling_refusals(mut self) -> Self {
        let ipv6 = self.socket.local_addr().is_ok_and(|local| local.is_ipv6());
        // Where the kernel can't, what it drops is taken for lost.
        self.tells_refusals = tell_refusals(self.socket.as_fd(), ipv6).is_ok();
        self
    }

    /// A failed call: with the option that tells refusals, more errors of the path fail calls than without, and all
    /// of them queue up. Those that a socket without it isn't told of only interrupt.
    #[cold]
    fn failed(&self, error: io::Error) -> io::Error {
        let is_of_path =
            !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS));
        if self.tells_refusals && is_of_path && only_passing_errors(self.socket.as_fd()) {
            return io::ErrorKind::Interrupted.into();
        }
        error
    }

    /// Receives what the kernel hands over as one; says how many bytes.
    #[inline]
    fn receive_train(&mut self, buffer: &mut [u8], unit_bytes: usize) -> io::Result<usize> {
        match &mut self.wait {
            Some(wait) => wait.receive_train(&self.socket, buffer, unit_bytes),
            None => {
                let received = rustix::net::recv(self.socket.as_fd(), buffer, RecvFlags::empty());
                Ok(received.map_err(|error| self.failed(error.into()))?.0)
            }
        }
    }
}

impl DatagramPath for Udp {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    fn begin_sending(&mut self, unit_bytes: usize, most: usize) -> usize {
        let segment_bytes = u16::try_from(unit_bytes).unwrap_or(u16::MAX);
        let asks = self.tells_refusals && most > 1;
        let queues = if asks { Queues::of(&self.socket) } else { Queues::default() };
        self.is_queued = queues.some;
        self.sends_trains = self.offload
            && most > 1
            && !queues.cut_trains
            && set_send_segment(self.socket.as_fd(), segment_bytes).is_ok();
        if self.is_queued && !self.sends_trains { 1 } else { most }
    }

    #[inline]
    fn send(&mut self, batch: &[u8], unit_bytes: usize) -> io::Result<usize> {
        if self.sends_trains || batch.len() == unit_bytes {
            let sent = rustix::net::send(self.socket.as_fd(), batch, SendFlags::empty());
            Ok(sent.map_err(|error| self.failed(error.into()))? / unit_bytes)
        } else {
            send_batch(self.socket.as_fd(), batch, unit_bytes).map_err(|error| self.failed(error))
        }
    }

    fn adapt(&mut self, error: &io::Error, most: usize) -> Option<usize> {
        let code = error.raw_os_error();
        if !self.sends_trains {
            return None;
        }
        if code == Some(libc::EINVAL) && most > MOST_SEGMENTS_OF_OLD {
            return Some(MOST_SEGMENTS_OF_OLD);
        }
        // No checksum offload on this path, or segments beyond its MTU: the kernel can't segment
        // here. Without the option the same batch leaves datagram by datagram.
        let cannot = matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE));
        if cannot {
            self.sends_trains = false;
            // While it is set, no datagram leaves that the path takes in fragments only.
            let _unset = set_send_segment(self.socket.as_fd(), 0);
        }
        cannot.then_some(if self.is_queued { 1 } else { most })
    }

    fn begin_receiving(&mut self) {
        self.receives_trains = self.offload && enable_receive_offload(self.socket.as_fd()).is_ok();
        self.wait = self.receives_trains.then(|| BulkWait::of_datagrams(&self.socket)).flatten();
    }

    #[inline]
    fn receive(
        &mut self,
        unit_bytes: usize,
        buffer: &mut [u8],
        mut look: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        if self.receives_trains {
            let length = self.receive_train(buffer, unit_bytes)?;
            look(buffer.get(..length).unwrap_or_default());
            return Ok(());
        }
        let mut lengths = [0; 64];
        // One byte more than a datagram may have, so that longer ones show.
        let slot_bytes = unit_bytes + 1;
        let count = receive_batch(self.socket.as_fd(), buffer, slot_bytes, &mut lengths)
            .map_err(|error| self.failed(error))?;
        for (slot, length) in buffer.chunks_exact(slot_bytes).zip(&lengths).take(count) {
            look(slot.get(..*length).unwrap_or_default());
        }
        Ok(())
    }

    #[inline]
    fn receive_one(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let received = rustix::net::recv(self.socket.as_fd(), into, RecvFlags::empty());
        Ok(received.map_err(|error| self.failed(error.into()))?.0)
    }

    fn offload(&self) -> (bool, bool) {
        (self.sends_trains, self.receives_trains)
    }

    fn end_warm_up(&mut self) {
        self.drops_in_warm_up = socket_drops(self.socket.as_fd()).unwrap_or(0);
    }

    fn drops(&self) -> Option<u64> {
        let before = self.drops_in_warm_up;
        socket_drops(self.socket.as_fd()).map(|drops| drops.saturating_sub(before))
    }
}
