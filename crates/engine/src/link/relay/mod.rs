//! The link between sockets: what comes to one address is relayed to another, through the same
//! paths as packets are. No privileges are needed. One thread does it all.

mod tcp;
mod udp;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use linerate_measure::link::report::{Form, Passed, Waiting};
use linerate_measure::link::{Change, Direction, Link, Report};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event};

use self::tcp::Connections;
use self::udp::Associations;
use super::forward::{prepare_thread, time_until};
use super::path::Path;
use super::punctuality::Punctuality;
use super::{Calendar, Ending, Pace, passed, paths};
use crate::clock::{monotonic_ns, utc_ns};
use crate::error::Error;
use crate::event::Cancel;

/// Clients of UDP, or connections of TCP, at once; what comes beyond them is turned away.
const CLIENTS_MAX: usize = 1024;
/// Events taken at once.
const EVENTS_MAX: usize = 256;
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// Tries to find a port that is free for both UDP and TCP.
const PORT_TRIES: usize = 16;

/// What to relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayOptions {
    /// Where clients come to; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where they are relayed to.
    pub target: SocketAddr,
    /// Whether UDP is relayed.
    pub udp: bool,
    /// Whether TCP is relayed.
    pub tcp: bool,
}

/// Sockets that listen for what is to be relayed.
#[derive(Debug)]
pub struct Relay {
    options: RelayOptions,
    address: SocketAddr,
    udp: Option<UdpSocket>,
    tcp: Option<TcpListener>,
}

/// The two directions of UDP or TCP.
struct Lane {
    right: Path,
    left: Path,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A client's datagrams.
    Datagrams,
    /// The target's datagrams for the client of this mark.
    Answers(u32),
    /// A client's connection.
    Arrival,
    /// A connection's left (0) or right (1) end.
    End(u32, usize),
}

impl Source {
    fn data(self) -> epoll::EventData {
        let (kind, tag) = match self {
            Source::Datagrams => (0, 0),
            Source::Answers(tag) => (1, tag),
            Source::Arrival => (2, 0),
            Source::End(tag, end) => (3 + end as u64, tag),
        };
        epoll::EventData::new_u64(kind << 32 | u64::from(tag))
    }

    fn of(data: epoll::EventData) -> Self {
        let tag = data.u64() as u32;
        match data.u64() >> 32 {
            0 => Source::Datagrams,
            1 => Source::Answers(tag),
            2 => Source::Arrival,
            kind => Source::End(tag, (kind & 1) as usize ^ 1),
        }
    }
}

impl Relay {
    /// Binds the sockets.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where the address is taken or isn't this machine's.
    pub fn bind(options: RelayOptions) -> Result<Self, Error> {
        let wrong = |source| Error::Io {
            operation: "listen on",
            address: options.listen.to_string(),
            source,
        };
        let mut tries = if options.listen.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            match Self::try_bind(options) {
                Ok(relay) => return Ok(relay),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                Err(error) => return Err(wrong(error)),
            }
        }
    }

    fn try_bind(options: RelayOptions) -> io::Result<Self> {
        let mut address = options.listen;
        let mut tcp = None;
        if options.tcp {
            let domain = socket2::Domain::for_address(address);
            let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            let listener = TcpListener::from(socket);
            address = listener.local_addr()?;
            tcp = Some(listener);
        }
        let mut udp = None;
        if options.udp {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            address = socket.local_addr()?;
            udp = Some(socket);
        }
        Ok(Self { options, address, udp, tcp })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Between what it stands: left, right, and how to use it.
    pub fn describe(&self) -> [String; 3] {
        let what = match (self.options.udp, self.options.tcp) {
            (true, false) => "UDP",
            (false, true) => "TCP",
            _ => "UDP and TCP",
        };
        [
            format!("clients of {what} at {}", self.address),
            format!("{}", self.options.target),
            format!("give programs the address {} instead", self.address),
        ]
    }

    /// Relays until the time is over or somebody asks to stop, in the calling thread.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where a socket fails that all depends on.
    pub fn run(self, link: &Link, pace: &Pace, cancel: &Cancel) -> Result<Report, Error> {
        let mut notes = prepare_thread(pace);
        let (started_utc_ns, begun_ns) = (utc_ns(), monotonic_ns());
        let (address, options) = (self.address, self.options);
        let not_emulated = not_emulated(link, options);
        let mut running = self.start(link, pace).map_err(|source| fails(address, source))?;
        running.relay(link, pace, cancel).map_err(|source| fails(address, source))?;
        let elapsed_ns = monotonic_ns() - begun_ns;
        running.notes(&mut notes);
        notes.push("rates count payload: there are no headers here".to_owned());
        let (to_right, to_left, accuracy) = running.close();
        let ending = Ending {
            form: Form::Relay {
                listen: address.to_string(),
                target: options.target.to_string(),
                udp: options.udp,
                tcp: options.tcp,
            },
            started_utc_ns,
            elapsed_ns,
            pace: *pace,
            to_right,
            to_left,
            accuracy,
            not_emulated,
            notes,
        };
        Ok(ending.report(link))
    }

    fn start(self, link: &Link, pace: &Pace) -> io::Result<Running> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let lane = |link: &Link, bytes| {
            let (right, left) = paths(link, bytes, false);
            Lane { right, left }
        };
        let udp = match self.udp {
            Some(socket) => {
                let lane = lane(&for_datagrams(link), udp::BUFFER_BYTES);
                Some((Associations::new(socket, self.options.target, &poll)?, lane))
            }
            None => None,
        };
        let tcp = match self.tcp {
            Some(listener) => {
                let lane = lane(&for_streams(link), tcp::BUFFER_BYTES);
                Some((Connections::new(listener, self.options.target, &poll)?, lane))
            }
            None => None,
        };
        let punctuality = Punctuality::new(pace.waiting, monotonic_ns());
        Ok(Running { poll, udp, tcp, punctuality })
    }
}

fn fails(address: SocketAddr, source: io::Error) -> Error {
    Error::Io { operation: "relay what comes to", address: address.to_string(), source }
}

/// A relay at work.
struct Running {
    poll: OwnedFd,
    udp: Option<(Associations, Lane)>,
    tcp: Option<(Connections, Lane)>,
    punctuality: Punctuality,
}

impl Running {
    fn relay(&mut self, link: &Link, pace: &Pace, cancel: &Cancel) -> io::Result<()> {
        let begun_ns = monotonic_ns();
        let end_ns = pace.time_ns.map_or(u64::MAX, |time_ns| begun_ns.saturating_add(time_ns));
        let (datagrams, streams) = (for_datagrams(link), for_streams(link));
        let mut for_udp = Calendar::new(&datagrams, begun_ns);
        let mut for_tcp = Calendar::new(&streams, begun_ns);
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let mut now_ns = begun_ns;
        while now_ns < end_ns && !cancel.requested() {
            for (lane, calendar) in [
                (self.udp.as_mut().map(|(_, lane)| lane), &mut for_udp),
                (self.tcp.as_mut().map(|(_, lane)| lane), &mut for_tcp),
            ] {
                if let Some(Lane { right, left }) = lane {
                    calendar.apply(now_ns, std::slice::from_mut(right), std::slice::from_mut(left));
                }
            }
            let mut wake_ns = match pace.waiting {
                Waiting::Spinning => 0,
                Waiting::Sleeping => self.next_time().unwrap_or(u64::MAX).min(end_ns),
            };
            for calendar in [&for_udp, &for_tcp] {
                wake_ns = wake_ns.min(calendar.next_time().unwrap_or(u64::MAX));
            }
            self.wait(&mut events, wake_ns)?;
            for event in events.drain(..) {
                self.handle(Source::of(event.data))?;
            }
            self.deliver();
            now_ns = monotonic_ns();
        }
        Ok(())
    }

    /// Waits for events, until this time at most.
    fn wait(&self, events: &mut Vec<Event>, wake_ns: u64) -> io::Result<()> {
        // epoll_wait(2) counts in milliseconds where the kernel has no epoll_pwait2(2); ppoll(2)
        // counts in nanoseconds everywhere.
        let time = time_until(wake_ns);
        if time.tv_sec > 0 || time.tv_nsec > 0 {
            let mut waiting =
                [rustix::event::PollFd::new(&self.poll, rustix::event::PollFlags::IN)];
            match rustix::event::poll(&mut waiting, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let none = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.poll, spare_capacity(events), Some(&none)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle(&mut self, source: Source) -> io::Result<()> {
        match source {
            Source::Datagrams | Source::Answers(_) => {
                let Some((associations, lane)) = &mut self.udp else { return Ok(()) };
                match source {
                    Source::Answers(tag) => associations.handle_answers(tag, &mut lane.left),
                    _ => associations.handle_datagrams(&self.poll, &mut lane.right)?,
                }
            }
            Source::Arrival | Source::End(..) => {
                let Some((connections, lane)) = &mut self.tcp else { return Ok(()) };
                match source {
                    Source::End(tag, end) => connections.handle_end(
                        &self.poll,
                        tag,
                        end,
                        [&mut lane.right, &mut lane.left],
                    ),
                    _ => connections.handle_arrivals(&self.poll)?,
                }
            }
        }
        Ok(())
    }

    fn deliver(&mut self) {
        if let Some((associations, lane)) = &mut self.udp {
            for (direction, path) in [&mut lane.right, &mut lane.left].into_iter().enumerate() {
                let mut now_ns = monotonic_ns();
                while let Some(due) = path.take_due(now_ns) {
                    let length = due.packet.length;
                    if associations.send(direction, &due.packet) {
                        self.punctuality.record_departure(direction, due.due_ns, now_ns, length);
                    } else {
                        path.record_undeliverable(length);
                    }
                    path.recycle(due.packet.bytes);
                    now_ns = monotonic_ns();
                }
            }
        }
        if let Some((connections, lane)) = &mut self.tcp {
            for (direction, path) in [&mut lane.right, &mut lane.left].into_iter().enumerate() {
                let mut now_ns = monotonic_ns();
                while let Some(due) = path.take_due(now_ns) {
                    let length = due.packet.length;
                    self.punctuality.record_departure(direction, due.due_ns, now_ns, length);
                    connections.send(&self.poll, direction, due.packet, path);
                    now_ns = monotonic_ns();
                }
            }
            connections.resume(&self.poll, [&mut lane.right, &mut lane.left]);
        }
    }

    fn next_time(&self) -> Option<u64> {
        let lanes = [self.udp.as_ref().map(|of| &of.1), self.tcp.as_ref().map(|of| &of.1)];
        let paths = lanes.into_iter().flatten().flat_map(|lane| [&lane.right, &lane.left]);
        paths.filter_map(Path::next_time).min()
    }

    fn notes(&self, notes: &mut Vec<String>) {
        let udp = self.udp.as_ref().map_or(0, |(associations, _)| associations.turned_away());
        let tcp = self.tcp.as_ref().map_or(0, |(connections, _)| connections.turned_away());
        if udp > 0 {
            notes.push(format!("{udp} datagrams of clients beyond {CLIENTS_MAX} were dropped"));
        }
        if tcp > 0 {
            notes.push(format!("{tcp} connections beyond {CLIENTS_MAX} were refused"));
        }
    }

    fn close(self) -> (Passed, Passed, linerate_measure::link::report::Accuracy) {
        let accuracy = self.punctuality.accuracy();
        let spans = [0, 1].map(|direction| self.punctuality.span(direction));
        let lanes = [self.udp.map(|of| of.1), self.tcp.map(|of| of.1)];
        let (mut right, mut left) = (Passed::default(), Passed::default());
        for lane in lanes.into_iter().flatten() {
            add(&mut right, passed(lane.right, spans[0].length_ns(), spans[0].first_bytes, None));
            add(&mut left, passed(lane.left, spans[1].length_ns(), spans[1].first_bytes, None));
        }
        (right, left, accuracy)
    }
}

/// Adds what another path of the same direction passed in the same time.
fn add(to: &mut Passed, from: Passed) {
    let (all, more) = (&mut to.counters, from.counters);
    all.offered += more.offered;
    all.offered_bytes += more.offered_bytes;
    all.delivered += more.delivered;
    all.delivered_bytes += more.delivered_bytes;
    all.lost_at_random += more.lost_at_random;
    all.lost_in_queue += more.lost_in_queue;
    all.lost_in_emulator += more.lost_in_emulator;
    all.duplicated += more.duplicated;
    all.reordered += more.reordered;
    all.corrupted += more.corrupted;
    all.flipped_bits += more.flipped_bits;
    all.undeliverable += more.undeliverable;
    all.in_flight += more.in_flight;
    to.delivered_bps = match (to.delivered_bps, from.delivered_bps) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    to.flips.extend(from.flips);
}

/// The link with another direction in each direction's place.
fn with_directions(link: &Link, of: impl Fn(&Direction) -> Direction) -> Link {
    let change = |change: &Change| Change {
        at_ns: change.at_ns,
        to_right: change.to_right.as_ref().map(&of),
        to_left: change.to_left.as_ref().map(&of),
    };
    Link {
        to_right: of(&link.to_right),
        to_left: of(&link.to_left),
        changes: link.changes.iter().map(change).collect(),
        ..link.clone()
    }
}

/// What can be done to datagrams between sockets: there are no headers to mark.
fn for_datagrams(link: &Link) -> Link {
    with_directions(link, |direction| Direction { mark_at: None, ..direction.clone() })
}

/// What can be done to a stream of bytes: all of it arrives once, and in order.
fn for_streams(link: &Link) -> Link {
    with_directions(link, |direction| Direction {
        loss: 0.0,
        losses_in_a_row_max: None,
        burst_loss: None,
        reorder: None,
        duplicate: 0.0,
        mark_at: None,
        jitter: direction
            .jitter
            .map(|jitter| linerate_measure::link::Jitter { may_reorder: false, ..jitter }),
        ..direction.clone()
    })
}

/// What the description asks for in vain.
fn not_emulated(link: &Link, options: RelayOptions) -> Vec<String> {
    let changed = link.changes.iter().flat_map(|change| [&change.to_right, &change.to_left]);
    let all: Vec<&Direction> =
        [&link.to_right, &link.to_left].into_iter().chain(changed.flatten()).collect();
    let any = |of: fn(&Direction) -> bool| all.iter().any(|direction| of(direction));
    let asks = [
        ("loss", any(|direction| direction.loss > 0.0 || direction.burst_loss.is_some())),
        (
            "reordering",
            any(|direction| {
                direction.reorder.is_some()
                    || direction.jitter.is_some_and(|jitter| jitter.may_reorder)
            }),
        ),
        ("duplication", any(|direction| direction.duplicate > 0.0)),
    ];
    let mut missing = Vec::new();
    if options.tcp {
        let asked = asks.iter().filter(|(_, asked)| *asked);
        missing
            .extend(asked.map(|(name, _)| {
                format!("{name} for TCP: a relay has its bytes, not its packets")
            }));
        missing.push("for TCP: the delay of the handshake, and drops of a full queue (it makes the sender wait)".to_owned());
    }
    if any(|direction| direction.mark_at.is_some()) {
        missing.push("ECN marks: a relay has no headers".to_owned());
    }
    if options.udp && options.tcp {
        missing.push("one rate for UDP and TCP together: each has its own".to_owned());
    }
    missing
}

#[cfg(test)]
mod tests;
