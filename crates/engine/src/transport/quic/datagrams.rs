//! Datagrams of a connection (RFC 9221): what it takes to send, what has come, and the way of one
//! flow.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use linerate_measure::report::SocketFacts;
use linerate_measure::sample::QuicStatus;
use quinn_proto::SendDatagramError;
use socket2::Socket;

use super::cause::Cause;
use super::connection::{Connection, SharedConnection};
use super::stream::Facts;
use crate::socket::socket_drops;
use crate::transport::DatagramPath;

/// The time in which a connection must find that its path carries the requested size.
const SIZE_LIMIT: Duration = Duration::from_secs(5);
/// Datagrams that a flow looks at before others have their turn.
const MOST_AT_ONCE: usize = 1_024;
/// What a datagram that waits takes beside its bytes, at most.
const WAITING_BYTES: usize = 64;

/// How many datagrams of one flow were refused and are not told yet.
type Refused = Rc<Cell<u64>>;

/// Datagrams that a connection has taken to send and that have not left yet.
#[derive(Debug, Default)]
pub(super) struct DatagramsTaken {
    /// Whose they are, in the order in which they leave.
    runs: VecDeque<Run>,
    /// Frames in all packets that were made.
    framed: u64,
    /// Part of them: in the packets that were made last and have not left yet.
    departing: u64,
    /// What there is room for when none waits.
    room_bytes: usize,
}

/// Datagrams of one flow, one behind the other.
#[derive(Debug)]
struct Run {
    refused: Refused,
    count: u64,
}

impl DatagramsTaken {
    fn record_taken(&mut self, refused: &Refused, count: u64) {
        match self.runs.back_mut() {
            Some(run) if Rc::ptr_eq(&run.refused, refused) => run.count += count,
            _ => self.runs.push_back(Run { refused: Rc::clone(refused), count }),
        }
    }

    /// Whether no datagram waits to leave.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Packets were made, and hold frames up to this number since the connection began.
    pub(super) fn record_framed(&mut self, framed: u64) {
        self.departing += framed.saturating_sub(self.framed);
        self.framed = framed;
    }

    /// What was made last has left, but for so many of its packets, which were refused. Of a train that was refused
    /// in part its last frames were: all its packets hold equally many.
    pub(super) fn record_departure(&mut self, packets: usize, refused: usize) {
        let departing = std::mem::take(&mut self.departing);
        let refused = departing * refused as u64 / packets.max(1) as u64;
        self.take(departing - refused, false);
        self.take(refused, true);
    }

    /// All that is left was dropped before it came into a packet.
    fn record_drop(&mut self) {
        self.take(u64::MAX, true);
    }

    fn take(&mut self, mut count: u64, are_refused: bool) {
        while count > 0
            && let Some(run) = self.runs.front_mut()
        {
            let taken = run.count.min(count);
            run.count -= taken;
            count -= taken;
            if are_refused {
                run.refused.set(run.refused.get() + taken);
            }
            if run.count == 0 {
                self.runs.pop_front();
            }
        }
    }
}

impl Connection {
    /// The longest datagram that goes through as far as is known; `None`: the peer takes none.
    pub(super) fn longest_datagram(&mut self) -> Option<usize> {
        self.proto.datagrams().max_size()
    }

    /// Bytes of datagrams that it would take.
    fn datagram_room(&mut self) -> usize {
        let room = self.proto.datagrams().send_buffer_space();
        self.datagrams.room_bytes = self.datagrams.room_bytes.max(room);
        room
    }

    /// Takes one to send.
    ///
    /// # Errors
    ///
    /// `WouldBlock` where there is no room now, and an event says when there is; `FileTooLarge`
    /// where no packet can hold it.
    pub(crate) fn send_datagram(&mut self, bytes: Bytes) -> io::Result<()> {
        if let Some(cause) = &self.lost {
            return Err(cause.error());
        }
        let length = bytes.len();
        match self.proto.datagrams().send(bytes, false) {
            Ok(()) => {
                self.touch();
                Ok(())
            }
            Err(SendDatagramError::Blocked(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(SendDatagramError::TooLarge) => Err(too_large(length, self.longest_datagram())),
            Err(SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled) => {
                Err(unsupported())
            }
        }
    }

    /// The next datagram that has come.
    pub(crate) fn poll_datagram(&mut self) -> Option<Bytes> {
        self.proto.datagrams().recv()
    }

    /// Whether none of those that it took waits any more. What left in no packet was dropped: the path carries shorter
    /// ones now, or the connection has ended.
    fn has_flushed_datagrams(&mut self) -> bool {
        let waits =
            self.datagram_room() < self.datagrams.room_bytes || self.datagrams.departing > 0;
        if self.lost.is_none() && waits {
            return false;
        }
        self.datagrams.record_drop();
        true
    }
}

fn too_large(bytes: usize, most: Option<usize>) -> io::Error {
    let most = most.unwrap_or(0);
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!(
            "a QUIC packet holds {most} bytes here, not {bytes}: make the datagrams smaller (--size), \
             or set --mtu if the path carries larger packets"
        ),
    )
}

fn unsupported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the peer's QUIC doesn't accept datagrams")
}

/// Datagrams of one flow that have come and that it hasn't looked at.
pub(crate) type Arrivals = Rc<RefCell<VecDeque<Bytes>>>;

/// The way of one flow's datagrams: its connection's, of which others sort out what comes.
pub(crate) struct QuicDatagrams {
    connection: SharedConnection,
    arrivals: Arrivals,
    socket: Arc<Socket>,
    facts: Facts,
    refused: Refused,
    outgoing: BytesMut,
    began: Instant,
    /// Whether the path was found to carry what is asked for.
    carried: bool,
}

impl QuicDatagrams {
    pub(crate) fn new(
        connection: SharedConnection,
        arrivals: Arrivals,
        socket: Arc<Socket>,
        facts: Facts,
    ) -> Self {
        let (outgoing, began, carried) = (BytesMut::new(), Instant::now(), false);
        let refused = Refused::default();
        Self { connection, arrivals, socket, facts, refused, outgoing, began, carried }
    }

    /// Why nothing has come.
    fn silence(&self) -> io::Error {
        let connection = self.connection.borrow();
        connection.lost.as_ref().map_or_else(|| io::ErrorKind::WouldBlock.into(), Cause::error)
    }
}

impl DatagramPath for QuicDatagrams {
    fn socket(&self) -> &Socket {
        &self.socket
    }

    /// A connection begins with packets that every path carries, and tries longer ones.
    fn carries(&mut self, bytes: usize) -> io::Result<bool> {
        let mut connection = self.connection.borrow_mut();
        if let Some(cause) = &connection.lost {
            return Err(cause.error());
        }
        match connection.longest_datagram() {
            None => Err(unsupported()),
            Some(most) if most >= bytes => {
                self.carried = true;
                Ok(true)
            }
            most if self.began.elapsed() >= SIZE_LIMIT => Err(too_large(bytes, most)),
            Some(_) => Ok(false),
        }
    }

    fn begin_sending(&mut self, _unit_bytes: usize, most: usize) -> usize {
        most
    }

    fn send(&mut self, batch: &[u8], unit_bytes: usize) -> io::Result<usize> {
        let mut connection = self.connection.borrow_mut();
        let room = connection.datagram_room() / (unit_bytes + WAITING_BYTES);
        // Where there is no room the connection must be asked, or it wouldn't say when there is.
        let length = (room.max(1) * unit_bytes).min(batch.len());
        self.outgoing.extend_from_slice(batch.get(..length).unwrap_or_default());
        let mut datagrams = self.outgoing.split().freeze();
        let mut taken = 0;
        while datagrams.len() >= unit_bytes {
            match connection.send_datagram(datagrams.split_to(unit_bytes)) {
                Ok(()) => taken += 1,
                Err(_) if taken > 0 => break,
                Err(error) => return Err(error),
            }
        }
        connection.datagrams.record_taken(&self.refused, taken as u64);
        Ok(taken)
    }

    fn is_flushed(&mut self) -> bool {
        self.connection.borrow_mut().has_flushed_datagrams()
    }

    #[inline]
    fn take_refused(&mut self) -> u64 {
        self.refused.take()
    }

    fn end_sent_warm_up(&mut self) {
        self.refused = Refused::default();
    }

    fn begin_receiving(&mut self) {}

    fn receive(
        &mut self,
        unit_bytes: usize,
        _buffer: &mut [u8],
        mut look: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let mut arrivals = self.arrivals.borrow_mut();
        if arrivals.is_empty() {
            return Err(self.silence());
        }
        let count = arrivals.len().min(MOST_AT_ONCE);
        for datagram in arrivals.drain(..count).filter(|one| one.len() == unit_bytes) {
            look(&datagram);
        }
        Ok(())
    }

    fn receive_one(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let datagram = self.arrivals.borrow_mut().pop_front().ok_or_else(|| self.silence())?;
        let length = datagram.len().min(into.len());
        into.iter_mut().zip(datagram.iter()).for_each(|(place, byte)| *place = *byte);
        Ok(length)
    }

    fn offload(&self) -> (bool, bool) {
        self.facts.offload
    }

    /// A path that carries shorter packets than before is outlived, the end of the connection isn't.
    fn outlives(&self, _error: &io::Error) -> bool {
        self.carried && self.connection.borrow().lost.is_none()
    }

    fn end_warm_up(&mut self) {}

    /// What the socket dropped were packets of whichever flow.
    fn drops(&self) -> Option<u64> {
        None
    }

    fn quic(&self) -> Option<QuicStatus> {
        let socket_drops = socket_drops(self.socket.as_fd());
        Some(QuicStatus { socket_drops, ..self.connection.borrow().status() })
    }

    fn complete(&self, facts: SocketFacts) -> SocketFacts {
        self.facts.complete(&self.connection.borrow().agreed(), facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of some flows is told of.
    fn told<const N: usize>(flows: &[Refused; N]) -> [u64; N] {
        flows.each_ref().map(|flow| flow.take())
    }

    #[test]
    fn a_refused_packet_is_told_to_the_flows_whose_datagrams_it_held() {
        let flows = [Refused::default(), Refused::default()];
        let mut taken = DatagramsTaken::default();
        for (flow, count) in [(0, 2), (0, 1), (1, 2), (0, 4)] {
            taken.record_taken(&flows[flow], count);
        }
        assert_eq!(taken.runs.len(), 3);
        taken.record_framed(2);
        taken.record_departure(1, 0);
        assert_eq!(told(&flows), [0, 0]);
        // One of the first flow's, both of the second's, one of the first's again.
        taken.record_framed(6);
        taken.record_departure(1, 1);
        assert_eq!(told(&flows), [2, 2]);
        taken.record_departure(1, 1);
        assert_eq!(told(&flows), [0, 0], "a packet without datagrams");
        taken.record_drop();
        assert_eq!(told(&flows), [3, 0]);
        assert!(taken.is_empty());
    }

    #[test]
    fn of_a_train_that_is_refused_in_part_the_last_packets_are() {
        let flows = [Refused::default(), Refused::default()];
        let mut taken = DatagramsTaken::default();
        taken.record_taken(&flows[0], 6);
        taken.record_taken(&flows[1], 3);
        taken.record_framed(8);
        taken.record_departure(4, 2);
        assert_eq!(told(&flows), [2, 2]);
    }
}
