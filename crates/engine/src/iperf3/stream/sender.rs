//! Sending over TCP.

use std::io;
use std::os::fd::AsFd;

use rustix::net::sockopt;
use socket2::Socket;

use super::{Course, Now, Payload, Throttle};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Drive, Local, Turn};
use crate::transport::ByteStream;
use crate::waiting::Yielding;

/// After so many bytes a sender lets others on its processor have a turn, as native flows do: a
/// receiver there then finds the bytes in the cache.
const BYTES_PER_YIELD: usize = 2560 << 10;
/// The same with a thread of its own. The original's receiver, which sleeps where ours would yield, gets
/// 1.01 times the bytes of its own client on the same processor with this, 0.98 with half as much.
const BYTES_PER_YIELD_ALONE: usize = 5 << 20;
/// Where the kernel spaces out what it sends, a turn that was given away is late. Measured with bbr,
/// eight streams and the original's server, in times of its own client's rate: 0.82 with a yield after
/// 512 KiB, 0.90 after 2560, 1.00 after 10 MiB, 0.96 without. Senders that share a thread do better
/// with the shorter one: 1.40 and 1.26 of 128 streams.
const BYTES_PER_YIELD_SPACED: usize = 10 << 20;

/// With more streams than this a turn has the fewer calls the more they are: turns of megabytes on
/// thousands of streams would leave others without theirs for seconds.
const FEW_STREAMS: usize = 256;

/// What a sender shares its thread with.
#[derive(Clone, Copy)]
pub(in super::super) struct Company {
    /// Whether it has the thread for itself.
    pub(in super::super) is_alone: bool,
    /// All streams of the test.
    pub(in super::super) streams: usize,
}

impl Company {
    fn calls_per_turn(self) -> u32 {
        let crowd = u32::try_from(self.streams.div_ceil(FEW_STREAMS)).unwrap_or(u32::MAX);
        (CALLS_PER_TURN / crowd.max(1)).max(1)
    }
}

/// Sends blocks over a connection until the test ends.
pub(in super::super) struct Sender<S> {
    stream: S,
    course: Course,
    payload: Payload,
    throttle: Option<Throttle>,
    block_bytes: usize,
    /// What of the current block is left to send.
    left_bytes: usize,
    /// Blocks that may be sent before the rate is looked at again.
    blocks: u64,
    yielding: Yielding,
    calls_per_turn: u32,
}

impl<S: ByteStream> Sender<S> {
    pub(in super::super) fn new(
        stream: S,
        course: Course,
        payload: Payload,
        throttle: Option<Throttle>,
        block_bytes: usize,
        company: Company,
    ) -> Self {
        let congestion = sockopt::tcp_congestion(stream.socket().as_fd());
        let is_spaced = congestion.is_ok_and(|name| name.starts_with("bbr"));
        let yield_bytes = match company.is_alone {
            true if is_spaced => BYTES_PER_YIELD_SPACED,
            true => BYTES_PER_YIELD_ALONE,
            false => BYTES_PER_YIELD,
        };
        Self {
            stream,
            course,
            payload,
            throttle,
            block_bytes,
            left_bytes: 0,
            blocks: 0,
            yielding: Yielding::new(yield_bytes),
            calls_per_turn: company.calls_per_turn(),
        }
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Turn> {
        for _ in 0..self.calls_per_turn {
            match self.course.now(local) {
                Now::Works { begins: false } => {}
                Now::Works { begins: true } => self.restart(),
                Now::Waits => return Ok(Turn::Held),
                Now::Drains | Now::Ends => return Ok(Turn::Ended),
            }
            if self.left_bytes == 0
                && let Some(turn) = self.begin_block(local)
            {
                return Ok(turn);
            }
            let bytes = self.payload.next(self.left_bytes)?;
            if bytes.is_empty() {
                // The file's end is the test's.
                self.course.exhaust(local);
                return Ok(Turn::Held);
            }
            let sent = self.stream.send(bytes)?;
            self.record_sent(sent, local);
        }
        Ok(Turn::Again)
    }

    fn restart(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.restart();
            self.blocks = 0;
        }
    }

    /// Begins a block, where the rate and the goal let it.
    #[inline]
    fn begin_block(&mut self, local: &Local) -> Option<Turn> {
        if let Some(throttle) = self.throttle.as_mut().filter(|_| self.blocks == 0) {
            match throttle.poll(monotonic_ns(), self.block_bytes) {
                Ok(blocks) => self.blocks = blocks,
                Err(until_ns) => return Some(self.course.pause(until_ns)),
            }
        }
        if !self.course.may_send(self.block_bytes, local) {
            return Some(Turn::Held);
        }
        self.blocks = self.blocks.saturating_sub(1);
        self.left_bytes = self.block_bytes;
        None
    }

    #[inline]
    fn record_sent(&mut self, sent: usize, local: &Local) {
        self.course.record_sent(sent, local);
        self.payload.record_sent(sent);
        self.left_bytes = self.left_bytes.saturating_sub(sent);
        if let Some(throttle) = &mut self.throttle {
            throttle.record_sent(sent);
        }
        self.yielding.record_sent(sent);
    }
}

impl<S: ByteStream> Drive for Sender<S> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            match self.advance(local) {
                Ok(Turn::Ended) => return self.course.end(None, local),
                Ok(turn) => return turn,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        // In blocking calls a turn is where the phase is looked at.
                        if matches!(self.course.now(local), Now::Drains | Now::Ends) {
                            return self.course.end(None, local);
                        }
                        return Turn::READY;
                    }
                    io::ErrorKind::Interrupted => {}
                    _ => return self.course.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.stream.socket()
    }
}

#[test]
fn turns_of_thousands_are_short() {
    let calls = |streams| Company { is_alone: false, streams }.calls_per_turn();
    assert_eq!([0, 1, 256].map(calls), [CALLS_PER_TURN; 3]);
    assert_eq!([512, 5000, 20_000].map(calls), [CALLS_PER_TURN / 2, 1, 1]);
}
