//! The client's connections that come and go.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use linerate_measure::report::SocketFacts;
use linerate_measure::step::FlowSchedule;
use linerate_wire::netperf::test::Carrier;
use socket2::Socket;

use super::connections::{CLIENT_SILENCE, Exchanged, PAUSE, is_taken, kind_of, looped};
use super::data::DataPlan;
use super::transfer::Transfer;
use super::watchdog::Watched;
use crate::buffers::Buffers;
use crate::clock::{MILLISECOND_NS, monotonic_ns};
use crate::flow::{Ending, FlowShared, Local};
use crate::load::Connections;
use crate::phase::Phase;
use crate::socket::segment_bytes;
use crate::timetable::Timetable;

/// Ports tried for one connection before they count as exhausted.
const MOST_TRIES: u32 = 512;
/// The first port of the original's range.
const USUAL_FIRST: u16 = 5000;
/// A wait is cut into such pieces, between which somebody may ask to stop.
const PIECE_NS: u64 = 20 * MILLISECOND_NS;

/// The client's connections.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) server: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    /// The local ports, of which each connection takes the next; absent: the kernel's choice.
    pub(super) ports: Option<Ports>,
    pub(super) plan: DataPlan,
    pub(super) exchanged: Exchanged,
    pub(super) buffers: Buffers,
    /// After so many it is over.
    pub(super) count: Option<u64>,
    /// When each is due; absent: as soon as the one before is over.
    pub(super) schedule: Option<FlowSchedule>,
    pub(super) watched: Watched,
}

impl Dialer {
    pub(super) fn connections(self) -> Connections {
        Connections::Made(Box::new(move |flows| {
            let dialer = self.clone();
            looped(flows, move |shared, local| dialer.run(&shared, local))
        }))
    }

    fn run(self, shared: &FlowShared, local: &mut Local) -> Ending {
        let mut errors = BTreeMap::new();
        let mut left = self.count.unwrap_or(u64::MAX);
        let mut transfer = Transfer::new(&self.buffers, self.exchanged.request_bytes);
        let mut next = Next::default();
        while local.phase() == Phase::Hold {
            std::thread::park_timeout(PAUSE);
        }
        let mut began_ns = monotonic_ns();
        let mut timetable = self.schedule.as_ref().map(Timetable::new);
        timetable.iter_mut().for_each(|timetable| timetable.begin(began_ns));
        shared.tally.first_ns.set(began_ns);
        while left > 0 && local.phase() < Phase::Stop {
            if let Some(timetable) = &mut timetable {
                // One that fails has had its turn, too.
                match await_due(timetable, || local.phase() < Phase::Stop) {
                    Some(due_ns) => began_ns = due_ns,
                    None => break,
                }
            }
            match self.exchange(&mut next, &mut transfer, shared, local) {
                Ok(()) => {
                    left -= 1;
                    let now_ns = monotonic_ns();
                    let latency_ns = now_ns.saturating_sub(began_ns);
                    began_ns = now_ns;
                    shared.tally.record_transaction(latency_ns, false);
                    local.latencies.total.record_ns(latency_ns);
                }
                Err(error) => {
                    *errors.entry(kind_of(&error)).or_insert(0) += 1;
                    std::thread::sleep(PAUSE);
                    began_ns = monotonic_ns();
                }
            }
        }
        shared.tally.last_ns.set(monotonic_ns());
        Ending { errors, socket: next.seen, ..Ending::default() }
    }

    /// One connection, from the next port that is free.
    fn exchange(
        &self,
        next: &mut Next,
        transfer: &mut Transfer,
        shared: &FlowShared,
        local: &mut Local,
    ) -> io::Result<()> {
        let tries = self.ports.map_or(1, |ports| ports.count().min(MOST_TRIES));
        let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
        for _ in 0..tries {
            outcome = self.socket(next).and_then(|socket| {
                self.watched.run(socket, |socket| {
                    connect(socket, self.server)?;
                    self.converse(socket, next, transfer, shared, local)
                })
            });
            if !matches!(&outcome, Err(error) if is_taken(error)) {
                break;
            }
        }
        outcome
    }

    fn converse(
        &self,
        socket: &Socket,
        next: &mut Next,
        transfer: &mut Transfer,
        shared: &FlowShared,
        local: &mut Local,
    ) -> io::Result<()> {
        let Exchanged { request_bytes, response_bytes, half_closes } = self.exchanged;
        if request_bytes > 0 {
            let until = Phase::Abort;
            transfer.send_all(socket, request_bytes, until, shared, local)?;
            self.make_ahead(next);
            let missing = transfer.receive(socket, response_bytes, until, shared, local)?;
            if missing > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        if half_closes {
            socket.shutdown(Shutdown::Write)?;
        }
        self.make_ahead(next);
        next.see(socket);
        // The server closes first, so that the port that waits is its own.
        transfer.receive(socket, usize::MAX, Phase::Abort, shared, local).map(|_| ())
    }

    fn socket(&self, next: &mut Next) -> io::Result<Socket> {
        next.socket.take().map_or_else(|| self.bind(next.take_turn()), Ok)
    }

    /// Makes the next connection's socket while the server works on this one: a fourteenth of the rate on
    /// two processors. Not with one port for all of them, which takes a moment to be free again.
    fn make_ahead(&self, next: &mut Next) {
        if next.socket.is_none() && !self.has_one_port() {
            // What fails is tried again when it is needed, and fails then.
            next.socket = self.bind(next.take_turn()).ok();
        }
    }

    fn has_one_port(&self) -> bool {
        self.ports.is_some_and(|ports| ports.count() == 1)
    }

    /// A socket at the port whose turn it is.
    fn bind(&self, turn: u32) -> io::Result<Socket> {
        let (socket, _, _) = self.plan.make(Carrier::Tcp, self.server.is_ipv6())?;
        // It ends a connect too, which not every kernel ends for a watchdog.
        socket.set_write_timeout(Some(CLIENT_SILENCE))?;
        if self.ports.is_some() || self.local.is_some() {
            let any = || SocketAddr::new(super::unspecified(self.server.is_ipv6()), 0);
            let mut address = self.local.unwrap_or_else(any);
            address.set_port(self.ports.map_or(0, |ports| ports.at(turn)));
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
        }
        Ok(socket)
    }
}

/// Local ports of connections: a range, in which the first connection may begin anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ports {
    first: u16,
    last: u16,
    begin: u16,
}

impl Ports {
    /// The ports of a range (`-p`), beginning with the one that was told for the data connection (`-P`; 0:
    /// none was). Without a range they are the original's, extended down to the one that was told.
    pub(super) fn of(range: Option<(u16, u16)>, told: u16) -> Option<Self> {
        let (first, last) = match (range, told) {
            (Some(range), _) => range,
            (None, 0) => return None,
            (None, told) => (told.min(USUAL_FIRST), u16::MAX),
        };
        let last = last.max(first);
        let begin = if (first..=last).contains(&told) { told } else { first };
        Some(Self { first, last, begin })
    }

    fn count(&self) -> u32 {
        u32::from(self.last - self.first) + 1
    }

    /// The port of a turn; the range repeats.
    fn at(&self, turn: u32) -> u16 {
        let offset = (u32::from(self.begin - self.first) + turn % self.count()) % self.count();
        self.first.saturating_add(u16::try_from(offset).unwrap_or(0))
    }
}

/// What goes from one connection to the next.
#[derive(Default)]
struct Next {
    /// Says whose turn it is of the ports.
    turn: u32,
    socket: Option<Socket>,
    /// What is told of all of them: the segment size of the first.
    seen: Option<Box<SocketFacts>>,
}

impl Next {
    fn take_turn(&mut self) -> u32 {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        turn
    }

    fn see(&mut self, socket: &Socket) {
        self.seen.get_or_insert_with(|| {
            Box::new(SocketFacts { mss_bytes: segment_bytes(socket), ..SocketFacts::default() })
        });
    }
}

/// Sleeps until the next connection is due, or not at all where that was before, as with paced requests;
/// when it was. `None` where the test is over before.
fn await_due(timetable: &mut Timetable, mut goes_on: impl FnMut() -> bool) -> Option<u64> {
    let due_ns = timetable.due_ns();
    timetable.take();
    while goes_on() {
        let left_ns = due_ns.saturating_sub(monotonic_ns());
        if left_ns == 0 {
            return Some(due_ns);
        }
        std::thread::sleep(Duration::from_nanos(left_ns.min(PIECE_NS)));
    }
    None
}

/// Connects, as long as the socket's sends may take.
fn connect(socket: &Socket, server: SocketAddr) -> io::Result<()> {
    socket.connect(&server.into()).map_err(|error| match error.raw_os_error() {
        Some(libc::EINPROGRESS) => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use linerate_measure::Arrivals;

    use super::*;

    #[test]
    fn ports_begin_with_the_one_that_was_told_and_walk_through_their_range() {
        let ports = |range, told, turns: &[u32]| -> Option<Vec<u16>> {
            let ports = Ports::of(range, told)?;
            Some(turns.iter().map(|turn| ports.at(*turn)).collect())
        };
        assert_eq!(ports(None, 0, &[0]), None);
        assert_eq!(ports(None, 20_000, &[0, 1, 499]), Some(vec![20_000, 20_001, 20_499]));
        // From the last port on to the first of the original's range, or to a lower one that was told.
        assert_eq!(ports(None, 65_535, &[0, 1]), Some(vec![65_535, 5000]));
        assert_eq!(ports(None, 4000, &[0, 61_535, 61_536]), Some(vec![4000, 65_535, 4000]));
        let range = Some((7000, 7002));
        assert_eq!(ports(range, 7001, &[0, 1, 2, 3]), Some(vec![7001, 7002, 7000, 7001]));
        for told in [0, 6999, 7003] {
            assert_eq!(ports(range, told, &[0, 2, 3]), Some(vec![7000, 7002, 7000]), "{told}");
        }
        assert_eq!(ports(Some((1, 65_535)), 1, &[u32::MAX]), Some(vec![1]));
        assert_eq!(ports(Some((9, 9)), 5, &[0, 1]), Some(vec![9, 9]));
    }

    #[test]
    fn connections_are_awaited_until_they_are_due_and_while_the_test_goes_on() {
        let schedule =
            FlowSchedule { per_s: 100.0, arrivals: Arrivals::Even, seed: 0, first_ns: 0 };
        let mut timetable = Timetable::new(&schedule);
        let began_ns = monotonic_ns();
        timetable.begin(began_ns);
        for nth in 0..3 {
            let due_ns = began_ns + nth * 10 * MILLISECOND_NS;
            assert_eq!(await_due(&mut timetable, || true), Some(due_ns));
            assert!(monotonic_ns() >= due_ns);
        }
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(await_due(&mut timetable, || true), Some(began_ns + 30 * MILLISECOND_NS));
        assert_eq!(await_due(&mut timetable, || false), None);
    }
}
