//! Receiving plain datagrams in bulk.

use std::io;
use std::os::fd::AsFd;

use linerate_measure::step::Transfer;
use socket2::Socket;

use crate::buffers::Dirt;
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Local, Stage, Turn};
use crate::phase::Phase;
use crate::socket::receive_batch;
use crate::tally::Tally;

/// No datagram is longer (RFC 768: a length of 16 bits, the header's eight bytes included).
const LONGEST_BYTES: usize = 65_535;
/// Memory for datagrams that are received at once; what isn't filled is never touched.
const BATCH_BYTES: usize = 2 << 20;
const BATCH: usize = 64;

/// Receives datagrams of any length until an empty one comes, or the conductor says that no more
/// will.
pub(crate) struct PlainReceiver {
    /// What a datagram may have; of a longer one only so much is received.
    slot_bytes: usize,
    buffer: Vec<u8>,
    dirt: Dirt,
}

impl PlainReceiver {
    pub(super) fn new(step: &Transfer, dirt: Dirt) -> Self {
        let slot_bytes = (step.unit_bytes as usize).clamp(1, LONGEST_BYTES);
        let slots = (BATCH_BYTES / slot_bytes).clamp(1, BATCH);
        Self { slot_bytes, buffer: vec![0; slots * slot_bytes], dirt }
    }

    pub(super) fn turn(
        &mut self,
        socket: &Socket,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        let mut lengths = [0; BATCH];
        for _ in 0..CALLS_PER_TURN {
            if local.phase() >= Phase::Drained {
                return Ok(Stage::Over);
            }
            let count =
                receive_batch(socket.as_fd(), &mut self.buffer, self.slot_bytes, &mut lengths)?;
            let came = lengths.get(..count).unwrap_or_default();
            let filled = came.iter().position(|length| *length == 0).unwrap_or(count);
            let now_ns = monotonic_ns();
            if self.dirt != Dirt::default() {
                // As many buffers as datagrams have come: those of the next.
                let buffers = self.buffer.chunks_exact_mut(self.slot_bytes).take(filled);
                buffers.for_each(|buffer| self.dirt.before_receive(buffer));
            }
            if filled > 0 {
                if tally.first_ns.value() == 0 {
                    tally.first_ns.set(now_ns);
                }
                let bytes: usize = came.iter().take(filled).sum();
                tally.record_received(bytes);
                tally.datagrams.received.add(filled as u64);
            }
            tally.last_ns.set(now_ns);
            if filled < count {
                return Ok(Stage::Over);
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }
}
