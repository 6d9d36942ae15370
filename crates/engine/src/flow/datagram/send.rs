//! Sending datagrams in bulk.

use std::io;
use std::os::fd::AsFd;

use linerate_wire::step::{Content, StepEnd, Transfer};
use rustix::net::SendFlags;
use socket2::Socket;

use super::{Heading, Mark};
use crate::buffers::{Buffers, Dirt};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{CALLS_PER_TURN, DatagramEnding, Local, Stage, Turn};
use crate::pacing::Pacer;
use crate::phase::Phase;
use crate::socket::{send_batch, set_send_segment};
use crate::tally::Tally;

/// The most datagrams of one call (UDP_MAX_SEGMENTS of newer kernels, linux/udp.h).
const MOST_SEGMENTS: usize = 128;
/// The same of every kernel that has UDP_SEGMENT.
const MOST_SEGMENTS_OF_OLD: usize = 64;
/// The most bytes of one call: an IPv4 datagram's payload, which the kernel cuts up.
const MOST_CALL_BYTES: usize = 65_507;

/// Sends datagrams until the step's end.
pub(crate) struct DatagramSender<H> {
    heading: H,
    /// What the next datagram says.
    mark: Mark,
    /// Datagrams one behind the other, headers and all.
    batch: Vec<u8>,
    unit_bytes: usize,
    /// Datagrams that may leave at once.
    most: usize,
    left: u64,
    pacer: Option<Pacer>,
    /// Position in the pattern of the first datagram's first byte, where bytes are verified.
    position: Option<u64>,
    offload: bool,
    dirt: Dirt,
    ending: DatagramEnding,
}

impl<H: Heading> DatagramSender<H> {
    pub(crate) fn new(socket: &Socket, heading: H, offload: bool, step: &Transfer) -> Self {
        let unit_bytes = step.unit_bytes as usize;
        let pacer = step.pace.map(Pacer::new);
        let burst = pacer.as_ref().map_or(usize::MAX, |pacer| pacer.most_bytes() / unit_bytes);
        let most = burst.min(MOST_CALL_BYTES / unit_bytes).clamp(1, MOST_SEGMENTS);
        let segment_bytes = u16::try_from(unit_bytes).unwrap_or(u16::MAX);
        let offload =
            offload && most > 1 && set_send_segment(socket.as_fd(), segment_bytes).is_ok();
        Self {
            heading,
            mark: Mark::default(),
            batch: vec![0; unit_bytes * most],
            unit_bytes,
            most,
            left: match step.end {
                StepEnd::Count { count } => count,
                StepEnd::Bytes { bytes } => bytes.div_ceil(unit_bytes as u64),
                _ => u64::MAX,
            },
            pacer,
            position: match step.content {
                Content::Pattern { offset } => Some(offset),
                Content::Filler => None,
            },
            offload,
            dirt: Dirt::default(),
            ending: DatagramEnding { sent: Some(0), ..DatagramEnding::default() },
        }
    }

    /// Likewise, from buffers that a dialect has said more of.
    pub(crate) fn with_buffers(mut self, buffers: &Buffers) -> Self {
        if !buffers.are_plain() {
            self.batch = buffers.filled(self.unit_bytes, self.most);
            self.dirt = buffers.dirt;
        }
        self
    }

    pub(crate) fn turn(
        &mut self,
        socket: &Socket,
        tally: &Tally,
        local: &mut Local,
    ) -> io::Result<Stage> {
        for _ in 0..CALLS_PER_TURN {
            match local.phase() {
                Phase::Hold => return Ok(Stage::Goes(Turn::Held)),
                phase @ (Phase::WarmUp | Phase::Measure) if self.left > 0 => {
                    self.mark.warm_up = phase == Phase::WarmUp;
                }
                _ => {
                    tally.last_ns.set(monotonic_ns());
                    return Ok(Stage::Over);
                }
            }
            let now_ns = monotonic_ns();
            if tally.first_ns.value() == 0 {
                tally.first_ns.set(now_ns);
            }
            if let Some(until_ns) = self.pacer.as_ref().and_then(|pacer| pacer.wait_until(now_ns)) {
                return Ok(Stage::Goes(Turn::Pause { until_ns }));
            }
            let wanted = self.most.min(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.write_headers(wanted, now_ns, local);
            match self.send(socket, wanted * self.unit_bytes) {
                Ok(sent) => self.record_sent(sent, now_ns, tally),
                Err(error) => return self.handle_failure(error, wanted, now_ns),
            }
        }
        Ok(Stage::Goes(Turn::Again))
    }

    fn write_headers(&mut self, count: usize, now_ns: u64, local: &Local) {
        if self.dirt.send_bytes > 0 {
            let datagrams = self.batch.chunks_exact_mut(self.unit_bytes).take(count);
            datagrams.for_each(|datagram| self.dirt.before_send(datagram));
        }
        if H::BYTES == 0 && self.position.is_none() {
            return;
        }
        let mut mark = Mark { sent_ns: now_ns, ..self.mark };
        for datagram in self.batch.chunks_exact_mut(self.unit_bytes).take(count) {
            if let Some(position) = self.position {
                let at = position + mark.seq * self.unit_bytes as u64;
                datagram.copy_from_slice(local.pattern.slice(at, self.unit_bytes));
            }
            self.heading.write(datagram, mark);
            mark.seq += 1;
        }
    }

    /// Sends the first `bytes` of the batch; returns how many datagrams the stack took.
    fn send(&self, socket: &Socket, bytes: usize) -> io::Result<usize> {
        let batch = &self.batch[..bytes];
        if self.offload || bytes == self.unit_bytes {
            let sent = rustix::net::send(socket.as_fd(), batch, SendFlags::empty())?;
            Ok(sent / self.unit_bytes)
        } else {
            send_batch(socket.as_fd(), batch, self.unit_bytes)
        }
    }

    fn record_sent(&mut self, datagrams: usize, now_ns: u64, tally: &Tally) {
        let (count, bytes) = (datagrams as u64, datagrams * self.unit_bytes);
        self.mark.seq += count;
        self.left -= count;
        tally.record_sent(bytes);
        tally.datagrams_sent.add(count);
        if !self.mark.warm_up {
            self.ending.record_sent(count, self.unit_bytes);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.record_sent(now_ns, bytes);
        }
    }

    /// The stack refused: these datagrams never were on the path, and their numbers are used
    /// again.
    fn handle_failure(
        &mut self,
        error: io::Error,
        datagrams: usize,
        now_ns: u64,
    ) -> io::Result<Stage> {
        let code = error.raw_os_error();
        if self.offload && code == Some(libc::EINVAL) && self.most > MOST_SEGMENTS_OF_OLD {
            self.most = MOST_SEGMENTS_OF_OLD;
            return Ok(Stage::Goes(Turn::Again));
        }
        if self.offload && matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE)) {
            // No checksum offload on this path, or segments beyond its MTU: the kernel can't
            // segment here. Without the option the same batch leaves datagram by datagram.
            self.offload = false;
            return Ok(Stage::Goes(Turn::Again));
        }
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return Err(error);
        }
        if !self.mark.warm_up {
            self.ending.refused += datagrams as u64;
        }
        if code == Some(libc::ENOBUFS) {
            return Ok(Stage::Goes(Turn::Pause { until_ns: now_ns + MILLISECOND_NS / 10 }));
        }
        Err(error)
    }

    pub(crate) fn leave(self, ending: &mut DatagramEnding) {
        *ending = DatagramEnding { gso: Some(self.offload), ..self.ending };
    }
}
