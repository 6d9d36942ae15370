//! Sending datagrams.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use linerate_wire::iperf3::datagram::Header;
use socket2::Socket;

use super::{Course, Now, Throttle};
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{CALLS_PER_TURN, Drive, Local, Turn};
use crate::transport::{DatagramPath, Udp, most_of_one_call};
use crate::waiting::{DATAGRAM_BYTES_PER_YIELD, Yielding};

thread_local! {
    /// What the senders of a thread send from, one after the other: those of a test, which have the
    /// same payload.
    static BATCH: Rc<RefCell<Vec<u8>>> = Rc::default();
}

/// Sends numbered datagrams until the test ends.
pub(in super::super) struct DatagramSender {
    path: Udp,
    course: Course,
    throttle: Option<Throttle>,
    /// Datagrams one behind the other.
    batch: Rc<RefCell<Vec<u8>>>,
    unit_bytes: usize,
    /// Datagrams that may leave with one call.
    most: usize,
    wide: bool,
    /// The number of the last one sent.
    number: u64,
    /// Datagrams that may be sent before the rate is looked at again.
    blocks: u64,
    /// Datagrams that the goal has a place for and that weren't taken.
    claimed: usize,
    /// Without a rate.
    yielding: Option<Yielding>,
}

impl DatagramSender {
    pub(in super::super) fn new(
        socket: Arc<Socket>,
        course: Course,
        payload: &[u8],
        throttle: Option<Throttle>,
        wide: bool,
    ) -> Self {
        let unit_bytes = payload.len().max(1);
        let mut path = Udp::new(socket, true);
        let most = path.begin_sending(unit_bytes, most_of_one_call(unit_bytes));
        let batch = BATCH.with(Rc::clone);
        if batch.borrow().len() < most * unit_bytes {
            *batch.borrow_mut() = payload.repeat(most);
        }
        let is_unpaced = throttle.is_none();
        Self {
            path,
            course,
            throttle,
            batch,
            unit_bytes,
            most,
            wide,
            number: 0,
            blocks: 0,
            claimed: 0,
            yielding: is_unpaced.then(|| Yielding::new(DATAGRAM_BYTES_PER_YIELD)),
        }
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Turn> {
        for _ in 0..CALLS_PER_TURN {
            match self.course.now(local) {
                Now::Works { begins: false } => {}
                Now::Works { begins: true } => self.restart(),
                Now::Waits => return Ok(Turn::Held),
                Now::Drains | Now::Ends => return Ok(Turn::Ended),
            }
            let now_ns = monotonic_ns();
            if let Some(throttle) = self.throttle.as_mut().filter(|_| self.blocks == 0) {
                match throttle.poll(now_ns, self.unit_bytes) {
                    Ok(blocks) => self.blocks = blocks,
                    Err(until_ns) => return Ok(self.course.pause(until_ns)),
                }
            }
            let wanted = self.wanted(local);
            if wanted == 0 {
                return Ok(Turn::Held);
            }
            match self.send(wanted, now_ns) {
                Ok(sent) => self.record_sent(sent, local),
                Err(error) => {
                    if let Some(turn) = self.handle_failure(error, now_ns)? {
                        return Ok(turn);
                    }
                }
            }
        }
        Ok(Turn::Again)
    }

    fn restart(&mut self) {
        if let Some(throttle) = &mut self.throttle {
            throttle.restart();
            self.blocks = 0;
        }
        self.claimed = 0;
    }

    /// How many datagrams leave with the next call.
    #[inline]
    fn wanted(&mut self, local: &Local) -> usize {
        let mut most = self.most;
        if self.throttle.is_some() {
            most = most.min(usize::try_from(self.blocks).unwrap_or(usize::MAX));
        }
        while self.claimed < most && self.course.may_send(self.unit_bytes, local) {
            self.claimed += 1;
        }
        self.claimed.min(most)
    }

    /// Sends so many datagrams with their headers; says how many were taken.
    #[inline]
    fn send(&mut self, count: usize, now_ns: u64) -> io::Result<usize> {
        let mut batch = self.batch.borrow_mut();
        let batch = batch.get_mut(..count * self.unit_bytes).unwrap_or_default();
        let mut header = Header { sent_ns: now_ns, number: self.number };
        for datagram in batch.chunks_exact_mut(self.unit_bytes) {
            header.number += 1;
            header.encode(self.wide, datagram);
        }
        self.path.send(batch, self.unit_bytes)
    }

    #[inline]
    fn record_sent(&mut self, datagrams: usize, local: &Local) {
        let bytes = datagrams * self.unit_bytes;
        self.number += datagrams as u64;
        self.claimed = self.claimed.saturating_sub(datagrams);
        self.blocks = self.blocks.saturating_sub(datagrams as u64);
        self.course.record_sent(bytes, local);
        self.course.shared.flow.tally.datagrams_sent.add(datagrams as u64);
        if let Some(throttle) = &mut self.throttle {
            throttle.record_sent(bytes);
        }
        if let Some(yielding) = &mut self.yielding {
            yielding.record_sent(bytes);
        }
    }

    /// What the kernel refused was never on the path, and its numbers are used again.
    fn handle_failure(&mut self, error: io::Error, now_ns: u64) -> io::Result<Option<Turn>> {
        if let Some(most) = self.path.adapt(&error, self.most) {
            self.most = most;
            return Ok(None);
        }
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => Ok(Some(Turn::Pause { until_ns: now_ns + MILLISECOND_NS / 10 })),
            // The peer's port may have been closed; the conversation tells why.
            Some(libc::ECONNREFUSED) => Ok(Some(Turn::Pause { until_ns: now_ns + MILLISECOND_NS })),
            _ => Err(error),
        }
    }
}

impl Drive for DatagramSender {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            match self.advance(local) {
                Ok(Turn::Ended) => return self.course.end(None, local),
                Ok(turn) => return turn,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Turn::READY,
                    io::ErrorKind::Interrupted => {}
                    _ => return self.course.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.path.socket()
    }
}
