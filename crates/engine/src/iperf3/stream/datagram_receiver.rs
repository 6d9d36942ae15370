//! Receiving datagrams.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use linerate_wire::iperf3::datagram::{Arrivals, Header};
use rustix::net::RecvFlags;
use socket2::Socket;

use super::{Course, Now};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Drive, Local, Turn};
use crate::socket::{enable_receive_offload, receive_batch};

/// Receives numbered datagrams until the test ends.
pub(in super::super) struct DatagramReceiver {
    socket: Arc<Socket>,
    course: Course,
    arrivals: Arrivals,
    unit_bytes: usize,
    wide: bool,
    /// Whether the kernel hands over several as one.
    offload: bool,
}

impl DatagramReceiver {
    pub(in super::super) fn new(
        socket: Arc<Socket>,
        course: Course,
        unit_bytes: usize,
        wide: bool,
    ) -> Self {
        let offload = enable_receive_offload(socket.as_fd()).is_ok();
        let arrivals = Arrivals::default();
        Self { socket, course, arrivals, unit_bytes: unit_bytes.max(1), wide, offload }
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Turn> {
        for _ in 0..CALLS_PER_TURN {
            match self.course.now(local) {
                Now::Works { begins: false } | Now::Drains => {}
                Now::Works { begins: true } => self.arrivals.reset_jitter(),
                Now::Waits => return Ok(Turn::Held),
                Now::Ends => return Ok(Turn::Ended),
            }
            let mut buffer = std::mem::take(&mut local.receive_buffer);
            let received = self.receive(&mut buffer, local);
            local.receive_buffer = buffer;
            if !received? {
                return Ok(Turn::Ended);
            }
        }
        Ok(Turn::Again)
    }

    /// Takes what has come; says whether more may.
    fn receive(&mut self, buffer: &mut [u8], local: &mut Local) -> io::Result<bool> {
        let mut lengths = [0; 64];
        // One byte more than a datagram has, so that longer ones show.
        let slot_bytes = if self.offload { buffer.len() } else { self.unit_bytes + 1 };
        let count = if self.offload {
            let (length, _) =
                rustix::net::recv(self.socket.as_fd(), &mut *buffer, RecvFlags::empty())?;
            lengths[0] = length;
            1
        } else {
            receive_batch(self.socket.as_fd(), buffer, slot_bytes, &mut lengths)?
        };
        let now_ns = monotonic_ns();
        // The omitted time may have ended during the call.
        let now = self.course.now(local);
        match now {
            Now::Works { begins: true } => self.arrivals.reset_jitter(),
            Now::Ends => return Ok(false),
            _ => {}
        }
        let mut bytes = 0;
        for (slot, length) in buffer.chunks_exact(slot_bytes).zip(lengths.iter().take(count)) {
            bytes += self.record(slot.get(..*length).unwrap_or_default(), now_ns);
        }
        self.publish(bytes, local);
        // A socket that was shut down gives nothing, without an end.
        let nothing = lengths.iter().take(count).all(|length| *length == 0);
        Ok(!(nothing && now == Now::Drains))
    }

    /// Datagrams of the stream's size, one behind the other; says how many bytes they have.
    #[inline]
    fn record(&mut self, bytes: &[u8], now_ns: u64) -> usize {
        let mut taken = 0;
        for datagram in bytes.chunks(self.unit_bytes) {
            // The greeting and its answer are too short to be data.
            if let Some(header) = Header::decode(self.wide, datagram) {
                self.arrivals.record(header, now_ns);
                taken += datagram.len();
            }
        }
        taken
    }

    #[inline]
    fn publish(&self, bytes: usize, local: &Local) {
        if bytes == 0 {
            return;
        }
        let shared = &self.course.shared;
        shared.tally.lost.set(self.arrivals.lost);
        shared.tally.out_of_order.set(self.arrivals.out_of_order);
        shared.tally.jitter_ns.set((self.arrivals.jitter_s() * 1e9).to_bits());
        shared.flow.tally.datagrams_expected.set(self.arrivals.highest);
        self.course.record_received(bytes, local);
    }
}

impl Drive for DatagramReceiver {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            match self.advance(local) {
                Ok(Turn::Ended) => return self.course.end(None, local),
                Ok(turn) => return turn,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => match self.course.now(local) {
                        Now::Drains | Now::Ends => return self.course.end(None, local),
                        _ => return Turn::READY,
                    },
                    // The peer's port was closed for a moment, or the call was cut short.
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted => {}
                    _ => return self.course.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        &self.socket
    }
}
