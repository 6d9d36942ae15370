//! Receiving datagrams.

use std::io;
use std::sync::Arc;

use linerate_wire::iperf3::datagram::{Arrivals, Header};
use socket2::Socket;

use super::{Course, Now};
use crate::clock::monotonic_ns;
use crate::flow::{CALLS_PER_TURN, Drive, Local, Turn};
use crate::transport::{DatagramPath, Udp};

/// Receives numbered datagrams until the test ends.
pub(in super::super) struct DatagramReceiver {
    path: Udp,
    course: Course,
    arrivals: Arrivals,
    unit_bytes: usize,
    wide: bool,
    /// Whether it has had a turn: only then does the socket wait as it will.
    has_begun: bool,
}

impl DatagramReceiver {
    pub(in super::super) fn new(
        socket: Arc<Socket>,
        course: Course,
        unit_bytes: usize,
        wide: bool,
    ) -> Self {
        Self {
            path: Udp::new(socket, true),
            course,
            arrivals: Arrivals::default(),
            unit_bytes: unit_bytes.max(1),
            wide,
            has_begun: false,
        }
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Turn> {
        if !self.has_begun {
            self.has_begun = true;
            self.path.begin_receiving();
        }
        for _ in 0..CALLS_PER_TURN {
            match self.course.now(local) {
                Now::Works { begins: false } | Now::Drains => {}
                Now::Works { begins: true } => self.arrivals.end_omitted(),
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
        let Self { path, course, arrivals, unit_bytes, wide, .. } = self;
        let mut seen = None;
        // A socket that was shut down gives nothing, without an end.
        let (mut bytes, mut nothing) = (0, true);
        path.receive(*unit_bytes, buffer, |received| {
            // The omitted time may have ended during the call.
            let (now_ns, now) = *seen.get_or_insert_with(|| {
                let now = course.now(local);
                if now == (Now::Works { begins: true }) {
                    arrivals.end_omitted();
                }
                (monotonic_ns(), now)
            });
            nothing &= received.is_empty();
            if now != Now::Ends {
                bytes += record(arrivals, received, *unit_bytes, *wide, now_ns);
            }
        })?;
        self.publish(bytes, local);
        Ok(match seen {
            Some((_, Now::Ends)) => false,
            Some((_, Now::Drains)) => !nothing,
            _ => true,
        })
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

/// Records datagrams of one size, one behind the other; says how many bytes they have.
#[inline]
fn record(
    arrivals: &mut Arrivals,
    bytes: &[u8],
    unit_bytes: usize,
    wide: bool,
    now_ns: u64,
) -> usize {
    let mut taken = 0;
    for datagram in bytes.chunks(unit_bytes) {
        // The greeting and its answer are too short to be data; said again they have the number 0.
        if let Some(header) = Header::decode(wide, datagram).filter(|header| header.number > 0) {
            arrivals.record(header, now_ns);
            taken += datagram.len();
        }
    }
    taken
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
        self.path.socket()
    }
}
